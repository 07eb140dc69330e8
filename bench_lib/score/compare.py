"""Runs beside runs and beside published rows; differences on shared probes, adjusted by Holm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import pandas as pd

from bench_lib.errors import BenchError, nearest
from bench_lib.schema import KEY
from bench_lib.score import paired, published, stats
from bench_lib.score.aggregate import OVERALL, capability_scores, main_items, task_scores
from bench_lib.score.cells import Cells, Statistic, grouped, macro, scaled
from bench_lib.score.instances import Instances

UNEVEN = 0.02
"""Shares of failed judge calls or missing replies that differ by more are marked."""
ALARM = 0.2
"""From this share of replies on, one kind of failure is pointed out."""


def beside(
    runs: Mapping[str, Instances], wanted: Sequence[str] = (), paper: published.Paper = "apm_bench"
) -> pd.DataFrame:
    """Task, capability and overall scores of runs, then those of published rows, in one long table.

    `wanted` are published rows as `method` or `method/protocol`. Columns: `system`, `origin` (`run`
    or `published`), then those of score tables; published rows have a value only.
    """
    parts = []
    for name, data in runs.items():
        both = pd.concat([task_scores(data), capability_scores(data)])
        parts.append(both.assign(system=name, origin="run"))
    printed = published.choose(wanted, paper)
    if len(printed):
        keys = printed["method"] + "/" + printed["protocol"]
        known = printed.assign(system=keys.str.rstrip("/"), origin="published")
        groups = {row for part in parts for row in zip(part["group"], part["measure"], strict=True)}
        rows = list(zip(known["group"], known["measure"], strict=True))
        known = known[[not groups or row in groups for row in rows]]
        parts.append(known.drop(columns=["method", "protocol"]))
    if not parts:
        return pd.DataFrame(columns=["system", "origin", "group", "measure", "value"])
    found = pd.concat(parts, ignore_index=True)
    first = ["system", "origin"]
    return found[[*first, *(column for column in found.columns if column not in first)]]


def differences(
    runs: Mapping[str, Instances], baseline: str, groups: Sequence[str] = (OVERALL,)
) -> pd.DataFrame:
    """Each run less the baseline on the probes that both have scored, in percent points.

    `groups` are tasks, capabilities or the overall score. All rows together are the family within
    which the column `p_holm` is adjusted. `left_out` counts probes that only one of the two scored.

    Raises:
        BenchError: unknown baseline or group.
    """
    if baseline not in runs:
        raise BenchError(f"no run {baseline!r} to compare with; {nearest(baseline, runs)}")
    rows = []
    for name, data in runs.items():
        if name == baseline:
            continue
        first, second, left = shared(runs[baseline], data)
        warning = _uneven(runs[baseline], data)
        for group in groups:
            codes, statistic = _group(data, group)
            found = paired.of_cells(*_cells(first, second, codes), scaled(statistic, 100))
            note = "; ".join(part for part in (warning, found.note) if part)
            row = {"system": name, "baseline": baseline, "group": group, **asdict(found)}
            rows.append({**row, "left_out": left, "note": note})
    columns = ["system", "baseline", "group", "value", "low", "high", "p", "p_holm", "test", "n",
               "clusters", "detectable", "left_out", "note"]  # fmt: skip
    table = pd.DataFrame(rows, columns=[c for c in columns if c != "p_holm"])
    return table.assign(p_holm=stats.holm(table["p"].astype(float)))[columns]


def shared(first: Instances, second: Instances) -> tuple[Instances, Instances, int]:
    """Both runs with the values of instances that count in both, and how many count in one only."""
    keys = []
    for data in (first, second):
        rows = data.rows
        counts = rows[rows["correct"].notna() | rows["g"].notna()]
        keys.append(pd.MultiIndex.from_frame(counts[KEY]))
    both = keys[0].intersection(keys[1])

    def only(data: Instances) -> Instances:
        index = pd.MultiIndex.from_frame(data.rows[KEY])
        # Rows stay, so that a candidate that lost one polarity is seen to be incomplete.
        keep = pd.Series(index.isin(both), index=data.rows.index)
        values = {name: data.rows[name].where(keep) for name in ("correct", "g")}
        return replace(data, rows=data.rows.assign(**values))

    return only(first), only(second), len(keys[0].union(keys[1])) - len(both)


def alarms(data: Instances) -> list[str]:
    """Sentences about a run that nobody should read a score without."""
    rows, found = data.rows, list(data.notes)
    scored = rows[rows["scored"]]
    reasons = scored.loc[scored["status"] == "unparsed", "why"].value_counts()
    for why, count in reasons.items():
        if count / len(scored) >= ALARM:
            found.append(f"{count} of {len(scored)} replies are unreadable for one reason: {why}")
    cut = int(scored["cut"].sum())
    if len(scored) and cut / len(scored) >= ALARM:
        found.append(f"{cut} of {len(scored)} replies were cut at their length limit")
    lost = len(rows) - len(scored)
    if lost:
        found.append(f"{lost} of {len(rows)} instances have no reply of the method")
    unjudged = int(rows["unjudged"].sum())
    if unjudged:
        found.append(f"{unjudged} passed probes have no verdict; scores are given as bounds")
    for name, column in (("option", "option"), ("decision", "decision")):
        values = scored[column].dropna()
        if len(values) >= 20 and values.nunique() == 1:
            found.append(
                f"every one of {len(values)} replies names the same {name}: {values.iloc[0]}"
            )
    return found


def _cells(first: Instances, second: Instances, codes: list[str]) -> tuple[Cells, Cells]:
    """Cells of both runs on the candidates that both have, in the same clusters."""
    items = [main_items(data) for data in (first, second)]
    owners = [pd.MultiIndex.from_frame(part[["trajectory", "candidate"]]) for part in items]
    common = owners[0].intersection(owners[1])
    items = [
        part[own.isin(common) & part["task"].isin(codes)]
        for part, own in zip(items, owners, strict=True)
    ]
    clusters = sorted(items[0]["trajectory"].astype(str).unique())
    made = [Cells.of(p, "value", "task", names=codes, clusters=clusters) for p in items]
    return made[0], made[1]


def _group(data: Instances, name: str) -> tuple[list[str], Statistic]:
    tasks = [task for task in data.bench.tasks if task.reply != "free"]
    capabilities = list(dict.fromkeys(task.capability for task in tasks))
    if name == OVERALL:
        places = [
            [i for i, task in enumerate(tasks) if task.capability == capability]
            for capability in capabilities
        ]
        return [task.code for task in tasks], grouped(places)
    codes = [task.code for task in tasks if name in (task.code, task.capability)]
    if not codes:
        known = [OVERALL, *capabilities, *(task.code for task in tasks)]
        raise BenchError(f"no group {name!r}; {nearest(name, known)}")
    return codes, macro


def _uneven(first: Instances, second: Instances) -> str:
    """A warning where what is missing differs so much that it could be the difference."""
    parts = []
    for what, column in (("judge failures", "unjudged"), ("missing replies", "scored")):
        shares = []
        for data in (first, second):
            rows = (
                data.adaptive[data.adaptive["passed"] == 1] if column == "unjudged" else data.rows
            )
            share = float(rows[column].mean()) if len(rows) else 0.0
            shares.append(1 - share if column == "scored" else share)
        if abs(shares[0] - shares[1]) > UNEVEN:
            parts.append(f"{what} differ: {shares[0]:.1%} and {shares[1]:.1%}")
    return ", ".join(parts)
