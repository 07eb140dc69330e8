"""How a score stands in a table, written once for all tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from bench_lib.report.score_table import why_missing
from bench_lib.report.tables import Cell, dash

if TYPE_CHECKING:
    pass


NO_RUN = "no run yet"


def score_cell(one: pd.Series | None) -> Cell:
    """A score with its interval, n and G; bounds, or a dash with its reason."""
    if one is None:
        return dash(NO_RUN)
    n = f"n {one['n']:.0f}/{one['expected']:.0f}, G {one['clusters']:.0f}"
    if not math.isnan(one["value"]):
        between = "" if math.isnan(one["low"]) else f"[{one['low']:.1f}, {one['high']:.1f}] "
        return Cell(f"{one['value']:.2f}", between + n)
    if not math.isnan(one["bound_low"]):
        return Cell(f"{one['bound_low']:.1f} to {one['bound_high']:.1f}", f"unjudged, {n}")
    return dash(why_missing(one))


SHADES = ("#3566a8", "#c4622d", "#2b8a68", "#7d4a9e", "#8d7b2a", "#3a3f47", "#b0417a", "#5b93b5")


SIGNS = "osD^vPX*"
