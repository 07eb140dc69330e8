"""What StreamArena's methods did: their searches, when they spoke up, how long they took."""

from __future__ import annotations

import math

import pandas as pd

from bench_lib.benches.arena.scores import arena_scores
from bench_lib.benches.arena.tables import N_A, SMALL, Runs
from bench_lib.readings import times
from bench_lib.readings.found import line
from bench_lib.readings.material import Material
from bench_lib.readings.origins import APART, apart
from bench_lib.report.cells import score_cell
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import duration
from bench_lib.report.theme import colour
from bench_lib.score.instances import Instances
from bench_lib.score.timing import ALERT_TIMINGS

LOOP, NO_LOOP = "searches offered", "no searches, scored"
TOOLS = "A right answer without a search was known, or guessed."
TIMING = "The first alert decides, whatever follows it."


def tools(runs: Runs) -> Table:
    """Tool questions: accuracy, how often a search was made, and what it is worth."""
    rows = []
    for label, material in runs.items():
        data = material.scored
        own = data.where(data.rows["task"] == "Tool")
        scored = own.where(own.rows["scored"].astype(bool))
        if scored.rows.empty:
            why = "no Tool question was answered"
            rows.append(Row((Cell(label), Cell("N/A"), *[dash(why)] * 6)))
            continue
        loop = bool(material.facts.get("tools"))
        called = scored.rows["tool_calls"] > 0
        others = data.rows["scored"].astype(bool) & data.rows["task"].isin(["RTP", "HR"])
        used = [Cell("N/A", why="no search is offered")] * 4
        if loop:
            calls = int(scored.rows["tool_calls"].sum())
            used = [
                _share(called),
                _accuracy(scored.where(called), "a search was made nowhere"),
                _accuracy(scored.where(~called), "a search was made everywhere"),
                Cell(f"{calls / max(1, int(called.sum())):.1f}", f"{calls:,} in all"),
            ]
        elsewhere = _share(data.rows.loc[others, "tool_calls"] > 0) if loop else used[0]
        cells = (Cell(label), Cell(LOOP if loop else NO_LOOP), _accuracy(own, ""), *used, elsewhere)
        rows.append(Row(cells))
    columns = ("", "loop", "accuracy", "questions with a search", "accuracy with one",
               "accuracy without", "searches a question that searched",
               "searched for RTP and HR")  # fmt: skip
    note = (
        f"Percent. {SMALL} A method that offers its model no search may still know an answer: it "
    )
    note += "is scored, and its use of tools is N/A."
    title = "Tool questions and searches"
    return Table(title, columns, tuple(rows), note, texts=2, stacked=True)


def _share(flags: pd.Series) -> Cell:
    if not len(flags):
        return dash("n = 0")
    return Cell(f"{100 * flags.mean():.0f}", f"{int(flags.sum()):,} of {len(flags):,}")


def _accuracy(data: Instances, why: str) -> Cell:
    if data.rows.empty:
        return dash(f"n = 0: {why}" if why else "n = 0")
    return score_cell(line(arena_scores(data), "Tool"))


def timings(runs: Runs) -> Table:
    """When the first alert of each proactive case came."""
    rows = []
    for label, material in runs.items():
        own = material.scored.rows
        own = own[own["task"] == "Pro"]
        if "Pro" in material.unsupported or own.empty:
            why = N_A if len(own) else "nothing was asked"
            rows.append(Row((Cell(label), *[Cell("N/A", why=why)] * 8)))
            continue
        scored = own[own["scored"].astype(bool)]
        counts = [int((scored["timing"] == kind).sum()) for kind in ALERT_TIMINGS]
        on_time = scored[scored["timing"] == "on time"]
        right = on_time["value"].dropna()
        judged = Cell(f"{int(right.sum()):,}", f"of {len(on_time):,}")
        if len(right) < len(on_time):
            judged = dash(f"{len(on_time) - len(right):,} of {len(on_time):,} are not judged")
        spoke = scored[scored["observed_s"].map(math.isfinite)]
        lag = (spoke["observed_s"] - spoke["due_s"]).astype(float)
        wait = (spoke["delivered_s"] - spoke["observed_s"]).astype(float)
        rows.append(
            Row(
                (
                    Cell(label),
                    *(Cell(f"{n:,}") for n in counts),
                    judged,
                    _median(lag, "{:+.1f}"),
                    _median(wait, "{:.1f}"),
                    Cell(f"{len(scored):,}", f"/ {len(own):,}"),
                )
            )
        )
    stamp = next((m.stamp for m in runs.values()), "observed")
    columns = ("", *ALERT_TIMINGS, "right of those on time", "median lag [s]",
               "observed to delivered [s]", "scored / asked")  # fmt: skip
    note = (
        "Cases by their first alert, whose window is due - 0.5 s to due + 2 s, both ends included, "
        f"by the {stamp} stamp (parameter stamp). Observed is the time of the newest frame that "
        "the method had seen, delivered when its words were out. The lag is from the due time to "
        "the observed stamp. Cases that end after their video are right-censored: missing, not "
        "wrong."
    )
    return Table("Timing of first alerts", columns, tuple(rows), note)


def _median(values: pd.Series, form: str) -> Cell:
    return Cell(form.format(values.median())) if len(values) else dash("it never spoke")


def cases(material: Material) -> Table:
    """Every proactive case of a run."""
    title = "Every proactive case"
    rows_of = material.scored.rows
    own = rows_of[rows_of["task"] == "Pro"].sort_values(["trajectory", "due_s"])
    if "Pro" in material.unsupported or own.empty:
        return Table(title, (), (), absent=f"{title}: {N_A}.")
    said = {r.key: r.text for r in material.responses}
    rows = []
    for _, one in own.iterrows():
        times = [_instant(float(one[k])) for k in ("observed_s", "delivered_s")]
        key = str(one["trajectory"]), str(one["candidate"]), str(one["probe"])
        candidate = material.asks[key][1].candidate
        reference = candidate.probes[0].reference.response or candidate.references.get("answer", "")
        text = said.get(key, "")
        cells = (
            Cell(str(one["candidate"])),
            Cell(
                text or str(one["why"] or "(silent)"),
                "" if text == reference else f"reference: {reference}",
            ),
            Cell(f"{one['asked_s']:.1f}"),
            Cell(f"{one['due_s']:.1f}"),
            *times,
            Cell(str(one["timing"] or one["status"]).replace("_", " ")),
            _verdict(one),
        )
        rows.append(Row(cells, colour=colour("Pro")))
    columns = ("case", "said", "registered [s]", "due [s]", "observed [s]", "delivered [s]",
               "timing", "right")  # fmt: skip
    return Table(title, columns, tuple(rows), "Seconds of the video.", texts=2)


def _instant(t_s: float) -> Cell:
    return Cell(f"{t_s:.1f}") if math.isfinite(t_s) else dash("no alert")


def _verdict(one: pd.Series) -> Cell:
    if one["unjudged"]:
        return dash("not judged")
    return dash("not scored") if math.isnan(one["value"]) else Cell("yes" if one["value"] else "no")


WAITS = (
    ("ttft_query_s", "first token, from the question"),
    ("ttft_prep_s", "with preparation"),
    ("ttft_e2e_s", "end to end"),
    ("total_s", "whole answer"),
)


def latency(runs: Runs) -> Table:
    """Waits of the reactive questions by run and capability."""
    rows, told = [], apart(runs)
    for label, material in runs.items():
        frame = times.derived(material)
        rows.append(Row((Cell(label + APART * bool(told)),), "group", colour("")))
        for code in ("RTP", "HR", "Tool"):
            own = frame[frame["task"] == code]
            rows.append(Row((Cell(code), *_waits(own)), colour=colour(code)))
        rows.append(Row((Cell("all"), *_waits(frame)), "mean"))
    columns = ("", *(name for _, name in WAITS), "n")
    note = "Medians; small: 95th percentile. Seconds of this machine: with a program as its model "
    note += (
        "they are those of the mechanism alone. Query to first token begins where the memory is "
    )
    note += "ready; an agent's covers all calls up to the first token of its answer."
    return Table("Time to an answer", columns, tuple(rows), f"{note} {told}".rstrip())


def _waits(own: pd.DataFrame) -> list[Cell]:
    cells = []
    for key, _ in WAITS:
        values = own[key].dropna().astype(float)
        if values.empty:
            cells.append(dash("no question was answered"))
        else:
            cells.append(
                Cell(
                    duration(float(values.median())),
                    f"95 %: {duration(float(values.quantile(0.95)))}",
                )
            )
    return [*cells, Cell(f"{len(own):,}")]
