"""The papers' own numbers (`published.json`), by table and as rows beside runs.

Values are as printed; null is not reported, never zero. `doubts` says where a figure is inferred.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from bench_lib.errors import BenchError, nearest
from bench_lib.score.adaptive import AVERAGE, POOLED
from bench_lib.score.aggregate import ACCURACY, GATED, OVERALL
from bench_lib.tasks import APM_BENCH, AR, CSU, REACTIVE, RTP

Paper = Literal["apm_bench", "streamarena"]
PATH = Path(__file__).parent / "published.json"
CAPABILITIES = {"cross_session": CSU, "perception": RTP, "adaptive": AR, "overall": OVERALL}
ADAPTIVE = [task.code for task in APM_BENCH.tasks if task.adaptive]
TTFT, STORAGE, FAILURES = "TTFT (s)", "storage (bytes per hour)", "format failures (%)"
RTF, LATENCY = "real-time factor", "full response (s)"


@cache
def _all() -> dict[str, Any]:
    return json.loads(PATH.read_text(encoding="utf-8"))


def table(name: str, paper: Paper = "apm_bench") -> pd.DataFrame:
    """The rows of a table; BenchError with the known names."""
    tables = _all()[paper]["tables"]
    if name not in tables:
        raise BenchError(f"{paper} has no table {name!r}; {nearest(name, tables)}")
    return pd.DataFrame(tables[name]["rows"])


def fact(name: str, paper: Paper = "apm_bench") -> Any:
    """A single figure of the paper, stated or derived."""
    known = {**_all()[paper]["derived"], **_all()[paper]["facts"]}
    if name not in known:
        raise BenchError(f"{paper} has no fact {name!r}; {nearest(name, known)}")
    return known[name]


def doubts(about: str = "", paper: Paper = "apm_bench") -> list[dict[str, str]]:
    """Where a figure is inferred, unclear or missing, for all tables or one."""
    return [doubt for doubt in _all()[paper]["doubts"] if about in doubt["where"]]


def method_name(method: str, paper: Paper = "apm_bench") -> str:
    """The printed name of a method."""
    return str(_all()[paper]["methods"][method]["name"])


def scores(paper: Paper = "apm_bench") -> pd.DataFrame:
    """All published scores as rows: method, protocol, group, measure, value.

    Groups and measures are those of our own tables. Unknown cells are left out; `protocol` is the
    memory protocol, for StreamArena the variant.
    """
    rows = _apm() if paper == "apm_bench" else _arena()
    frame = pd.DataFrame(rows, columns=["method", "protocol", "group", "measure", "value"])
    return frame[frame["value"].notna()].reset_index(drop=True)


def choose(wanted: Sequence[str], paper: Paper = "apm_bench") -> pd.DataFrame:
    """Rows of `scores` for `method` (every protocol) or `method/protocol`, in the order given.

    Raises:
        BenchError: an unknown name, with the nearest known one.
    """
    found = scores(paper)
    keys = found["method"] + "/" + found["protocol"]
    parts = []
    for name in wanted:
        mask = (keys if "/" in name else found["method"]) == name
        if not mask.any():
            known = sorted({*found["method"], *keys})
            raise BenchError(f"no published row {name!r}; {nearest(name, known)}")
        parts.append(found[mask])
    return pd.concat(parts, ignore_index=True) if parts else found.iloc[:0]


def _apm() -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []

    def add(row: Any, group: str, measure: str, column: str) -> None:
        value = row.get(column)
        rows.append((row["method"], row["memory_protocol"], group, measure, value))

    for row in _rows("table_3_main"):
        for key, name in CAPABILITIES.items():
            if key != "overall":
                add(row, name, "score", f"{key}_pct")
        add(row, OVERALL, TTFT, "ttft_s")
        add(row, OVERALL, STORAGE, "storage_bytes_per_hour")
    for row in _rows("table_8_rtf"):
        add(row, OVERALL, RTF, "rtf_mean_ratio")
    for row in _rows("table_9_api_latency"):
        add(row, OVERALL, LATENCY, "full_response_latency_mean_s")
    for row in _rows("table_4_tasks"):
        for task in APM_BENCH.tasks:
            measure = GATED if task.adaptive else ACCURACY
            add(row, task.code, measure, f"{task.code.lower()}_pct")
        add(row, OVERALL, "score", "overall_pct")
    for row in _rows("table_6_decision"):
        for code in ADAPTIVE:
            add(row, code, "balanced accuracy", f"{code.lower()}_ba_pct")
        for key in ("positive", "negative"):
            add(row, POOLED, f"{key} rate", f"overall_{key}_pct")
        add(row, POOLED, "balanced accuracy", "overall_ba_pct")
    for row in _rows("table_7_response_quality"):
        for code in ADAPTIVE:
            add(row, code, "response quality", f"{code.lower()}_quality_pct")
            add(row, code, "gate pass rate", f"{code.lower()}_gate_pass_pct")
        add(row, AVERAGE, "response quality", "average_quality_pct")
    for name in ("table_11_format_failures_specialised", "table_12_format_failures_general"):
        for row in _rows(name):
            add(row, "All tasks", FAILURES, "failure_rate_pct")
    for row in _rows("table_13_evidence_availability"):
        for measure, column in AVAILABILITY.items():
            add(row, "all", measure, column)
    return rows


AVAILABILITY = {
    "original accuracy": "original_accuracy_pct",
    "available accuracy": "evidence_available_accuracy_pct",
    "unavailable detection": "evidence_unavailable_detection_pct",
    "balanced accuracy": "balanced_accuracy_pct",
}


def _arena() -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    columns = {"RTP": "rtp_pct", "HR": "hr_pct", "Tool": "tool_pct", "Pro": "proactive_pct"}
    for row in _rows("table_3_main", "streamarena"):
        for code, column in columns.items():
            rows.append((row["method"], row["variant"] or "", code, ACCURACY, row[column]))
    for row in _rows("table_4_latency", "streamarena"):
        rows.append((row["method"], "", REACTIVE, ACCURACY, row["pooled_accuracy_pct"]))
    return rows


def _rows(name: str, paper: Paper = "apm_bench") -> list[dict[str, Any]]:
    return _all()[paper]["tables"][name]["rows"]
