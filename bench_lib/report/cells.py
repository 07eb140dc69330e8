"""How a score stands in a table, written once for all tables."""

from __future__ import annotations

import math

import pandas as pd

from bench_lib.report.score_table import why_missing
from bench_lib.report.tables import Cell, dash
from bench_lib.report.text import percent, reach
from bench_lib.score.intervals import ENOUGH

NO_RUN = "no run yet"
NOT_ASKED = "n = 0: nothing of this was asked"
NO_INTERVAL = f"no interval: fewer than {ENOUGH} trajectories or videos tell something of it"
SHADES = ("#3566a8", "#c4622d", "#2b8a68", "#7d4a9e", "#8d7b2a", "#3a3f47", "#b0417a", "#5b93b5")
SIGNS = "osD^vPX*"
"""Colours and marks of runs that stand beside each other in one figure."""


def score_cell(one: pd.Series | None, mark: str = "", none: str = NO_RUN) -> Cell:
    """A score with its interval, n of what was asked and G clusters; bounds, or why neither.

    `mark` stands behind the number, `none` says why there is no line at all.
    """
    if one is None:
        return dash(none)
    if not one["expected"]:
        return dash(NOT_ASKED)
    n = f"n {one['n']:,.0f}/{one['expected']:,.0f}, G {one['clusters']:,.0f}"
    if not math.isnan(one["value"]):
        text = percent(one["value"]) + mark
        if math.isnan(one["low"]):
            return Cell(text, n, NO_INTERVAL)
        return Cell(text, f"[{one['low']:.1f}, {one['high']:.1f}] {n}")
    if not math.isnan(one["bound_low"]):
        return Cell(reach(one["bound_low"], one["bound_high"]) + mark, f"unjudged, {n}")
    return dash(why_missing(one))
