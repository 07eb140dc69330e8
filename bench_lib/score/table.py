"""The one shape of score tables: a value with n, clusters, interval, estimator, and its gaps."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from bench_lib.score.stats import Estimate

COLUMNS = [
    "group", "measure", "value", "low", "high", "n", "expected", "clusters", "estimator",
    "interval", "bound_low", "bound_high", "refused_pct", "note",
]  # fmt: skip
"""`n` of `expected` instances entered; `bound_*` is where the score would lie were every unjudged
probe given 1 or 5; `refused_pct` is the share of refusals, which pass nowhere, in what was
scored. A missing number is NaN here and null on disk; `note` says why."""
DASH = "–"


def line(
    group: str,
    measure: str,
    found: Estimate,
    expected: int,
    estimator: str,
    *,
    n: int | None = None,
    clusters: int | None = None,
    bounds: tuple[float, float] | None = None,
    refused_pct: float = math.nan,
    note: str = "",
) -> dict[str, Any]:
    """One row; with `bounds` the value itself is withheld."""
    low, high = bounds or (math.nan, math.nan)
    withheld = bounds is not None
    return {
        "group": group,
        "measure": measure,
        "value": math.nan if withheld else found.value,
        "low": math.nan if withheld else found.low,
        "high": math.nan if withheld else found.high,
        "n": found.n if n is None else n,
        "expected": expected,
        "clusters": found.clusters if clusters is None else clusters,
        "estimator": estimator,
        "interval": "" if withheld else found.interval,
        "bound_low": low,
        "bound_high": high,
        "refused_pct": refused_pct,
        "note": "; ".join(part for part in (note, "" if withheld else found.note) if part),
    }


def refusals_pct(rows: pd.DataFrame) -> float:
    """The share of refusals among scored instances (columns `scored` and `status`), percent."""
    scored = rows.loc[rows["scored"].astype(bool), "status"]
    return 100 * float((scored == "refused").mean()) if len(scored) else math.nan


def table(lines: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table; the columns are there even when no row is."""
    return pd.DataFrame(list(lines), columns=COLUMNS)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for a strict JSON file: numbers are finite or null."""
    return json.loads(frame.to_json(orient="records", double_precision=12))


def shown(found: pd.Series | dict[str, Any], digits: int = 1) -> str:
    """A cell for people: value and interval, or the bounds, or a dash."""
    value, low, high = (float(found[name]) for name in ("value", "low", "high"))
    if not math.isnan(value):
        text = f"{value:.{digits}f}"
        return text if math.isnan(low) else f"{text} [{low:.{digits}f}, {high:.{digits}f}]"
    low, high = float(found["bound_low"]), float(found["bound_high"])
    return DASH if math.isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"


def wide(frame: pd.DataFrame, digits: int = 1) -> pd.DataFrame:
    """Groups as rows, measures as columns, each cell as `shown`; then n, clusters and notes."""
    if frame.empty:
        return pd.DataFrame()
    cells = frame.assign(cell=[shown(row, digits) for _, row in frame.iterrows()])
    order = list(dict.fromkeys(frame["group"]))
    out = cells.pivot(index="group", columns="measure", values="cell").loc[order].fillna("")
    out = out[list(dict.fromkeys(frame["measure"]))]
    first = frame.groupby("group", sort=False)
    out["n"] = first["n"].max()
    out["expected"] = first["expected"].max()
    out["clusters"] = first["clusters"].max()
    out["note"] = first["note"].agg(lambda notes: "; ".join(dict.fromkeys(n for n in notes if n)))
    return out
