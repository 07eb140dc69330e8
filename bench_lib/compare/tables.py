"""Tables of 09_compare. A dagger marks every number that no published one can be held against."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from bench_lib.compare.job import Comparison
from bench_lib.readings.origins import APART, apart
from bench_lib.report.cells import score_cell
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import DASH, duration, percent, plural, ratio, size
from bench_lib.report.theme import colour
from bench_lib.schema import SCORABLE
from bench_lib.score import compare, failures, published
from bench_lib.score.aggregate import OVERALL

DAGGER = "†"
NOT_PRINTED = "not printed in the paper"
SHARED = "§"
MARKED = f"{DAGGER} not comparable with published rows, for the reasons beside the name. "


def dagger(job: Comparison, system: str, origin: str) -> str:
    """The mark of a run whose numbers are other than a paper's."""
    return DAGGER if origin == "run" and job.marks(system) else ""


def _why(job: Comparison, system: str, origin: str) -> Cell:
    """Whether a row can be held against the papers, or why not."""
    return Cell("as published" if origin == "published" else "; ".join(job.marks(system)) or "yes")


def score(job: Comparison, system: str, group: str) -> pd.Series | None:
    """The line of a system and a group, None where there is none."""
    frame = job.scores
    rows = frame[(frame["system"] == system) & (frame["group"] == group)]
    main = rows[~rows["measure"].isin(OTHER)]
    return main.iloc[0] if len(main) else None


OTHER = (
    published.TTFT, published.RTF, published.LATENCY, published.STORAGE, published.FAILURES,
)  # fmt: skip


def systems(job: Comparison) -> Table:
    """What is compared."""
    rows = []
    for label, material in job.materials.items():
        params = material.params
        done = sum(r.status in SCORABLE for r in material.responses)
        cells = (
            Cell(label + dagger(job, label, "run"), material.run.folder.name),
            _why(job, label, "run"),
            Cell(params.method),
            Cell(str(material.facts.get("model", DASH))),
            Cell(params.source),
            Cell(material.judged.judge or "none"),
            Cell(", ".join(job.revisions[label])),
            Cell(f"{done:,}", f"/ {len(material.responses):,}"),
        )
        rows.append(Row(cells))
    columns = ("run", "comparable", "method", "model", "source", "judge", "code",
               "replies / asks")  # fmt: skip
    note = MARKED + "+ marks code with changes that no revision holds."
    return Table("Runs", columns, tuple(rows), note, texts=7)


def main(job: Comparison) -> Table:
    """Capabilities and the overall score of every system."""
    groups = [*_capabilities(job), OVERALL]
    return _scores(job, "Capabilities and overall", groups)


def tasks(job: Comparison) -> Table:
    """The twelve tasks of every system."""
    return _scores(job, "Scores by task", [task.code for task in _bench(job).tasks])


def _scores(job: Comparison, title: str, groups: Sequence[str]) -> Table:
    rows: list[Row] = []
    for origin, heading in (("run", "Runs"), ("published", "Published")):
        own = [system for system, kind in job.systems if kind == origin]
        if own:
            rows.append(Row((Cell(heading),), "group", colour("")))
        for system in own:
            mark = dagger(job, system, origin)
            values = [_value(score(job, system, group), mark, origin) for group in groups]
            cells = (Cell(job.shown(system, origin) + mark), _why(job, system, origin), *values)
            rows.append(Row(cells, "mean" if system == job.reference else "plain"))
    note = (
        "Percent; in small print the 95 % interval over trajectories, n of what was asked, and G "
        "trajectories. Two numbers with 'to' are bounds while replies are unjudged. Bold: the "
        f"reference. {MARKED}Published rows have no interval."
    )
    return Table(title, ("system", "comparable", *groups), tuple(rows), note, texts=2)


def _value(one: pd.Series | None, mark: str, origin: str) -> Cell:
    if one is None:
        return dash(NOT_PRINTED if origin == "published" else "not a task of this run")
    if origin == "published":
        return Cell(percent(one["value"]))
    return score_cell(one, mark)


def differences(job: Comparison) -> Table:
    """Each run less the reference on shared probes."""
    title = "Paired differences"
    if len(job.runs) < 2:
        return Table(title, (), (), absent="One run: there is nothing to take a difference from.")
    found = compare.differences(
        job.runs, job.reference, job.params.groups or [OVERALL, *_capabilities(job)]
    )
    rows = []
    for _, one in found.iterrows():
        rows.append(Row(_difference(job, one), colour=colour(str(one["group"]))))
    columns = (
        "run", "score", "difference [points]", "95 % interval", "p", "p, Holm",
        "would be seen [points]", "items", "G", "left out", "test",
    )  # fmt: skip
    note = (
        f"Less {job.reference}, on the items that both have scored. Holm adjusts over all rows of "
        "this table. 'Would be seen' is the difference found with 80 % power at this spread. "
        "'Left out' counts probes that only one of the two has scored."
    )
    return Table(title, columns, tuple(rows), note, texts=2)


def _difference(job: Comparison, one: pd.Series) -> tuple[Cell, ...]:
    why = str(one["note"]) or "n = 0: no item is scored in both"

    def number(name: str, form: str) -> Cell:
        return dash(why) if math.isnan(one[name]) else Cell(form.format(one[name]))

    between = dash(why)
    if not math.isnan(one["low"]):
        between = Cell(f"{one['low']:+.1f} to {one['high']:+.1f}")
    return (
        Cell(str(one["system"]) + dagger(job, str(one["system"]), "run")),
        Cell(str(one["group"])),
        number("value", "{:+.2f}"),
        between,
        number("p", "{:.3f}"),
        number("p_holm", "{:.3f}"),
        number("detectable", "{:.1f}"),
        Cell(f"{one['n']:,}"),
        Cell(f"{one['clusters']:,}"),
        Cell(f"{one['left_out']:,}", why=str(one["note"])),
        Cell(str(one["test"])),
    )


def settings(job: Comparison) -> Table:
    """Parameters and versions in which the runs differ."""
    title = "Parameters, versions and code"
    frame = job.settings
    if frame.empty:
        return Table(title, (), (), absent="None: the runs have the same settings.")
    rows = [
        Row((Cell(str(name)), *(Cell(str(value) or DASH) for value in values)))
        for name, values in zip(frame.index, frame.to_numpy(), strict=True)
    ]
    columns = ("setting", *map(str, frame.columns))
    return Table(title, columns, tuple(rows), texts=len(columns))


def failed(job: Comparison) -> Table:
    """Unreadable replies by kind, and passed replies without a verdict."""
    lines = {label: failures.format_failures(data).iloc[-1] for label, data in job.runs.items()}
    names = (*failures.FAILURES, "other reason")
    kinds = [name for name in names if any(one[name] for one in lines.values())]
    counts = ("unparsed", *kinds, "repaired", "cut", "refused", "error", "not_run")
    rows = []
    for label, one in lines.items():
        rate = dash("no reply to read")
        if not math.isnan(one["rate_pct"]):
            rate = Cell(f"{one['rate_pct']:.2f}{dagger(job, label, 'run')}")
        unjudged = int(job.runs[label].rows["unjudged"].sum())
        cells = (
            Cell(label + dagger(job, label, "run")), _why(job, label, "run"),
            Cell(f"{one['scored']:,}", f"/ {one['expected']:,}"), rate,
            *(Cell(f"{one[name]:,}") for name in counts), Cell(f"{unjudged:,}"),
        )  # fmt: skip
        rows.append(Row(cells))
    for system, origin in job.systems:
        rate_pct = _printed(job, system, published.FAILURES)
        if origin == "published" and not math.isnan(rate_pct):
            blank = [dash(NOT_PRINTED)] * (len(counts) + 1)
            cells = (
                Cell(job.shown(system, origin)),
                Cell("as published"),
                Cell("5,371"),
                Cell(f"{rate_pct:.2f}"),
            )
            rows.append(Row((*cells, *blank)))
    columns = ("system", "comparable", "replies / asks", "unparsed [%]",
               *(c.replace("_", " ") for c in counts), "no verdict")  # fmt: skip
    note = MARKED + "Unparsed replies and refusals count as wrong; error and not run are missing."
    return Table("Replies by outcome", columns, tuple(rows), note, texts=2)


def _printed(job: Comparison, system: str, measure: str) -> float:
    """A published cost or failure rate; NaN where it is not printed."""
    method, _, protocol = system.partition("/")
    rows = published.scores()
    mask = (rows["method"] == method) & (rows["protocol"] == protocol)
    found = rows[mask & (rows["measure"] == measure)]["value"]
    return float(found.iloc[0]) if len(found) else math.nan


def cost_of(job: Comparison, system: str, origin: str) -> dict[str, float]:
    """Times, bytes and their n as `Comparison.cost` gives them; NaN where there is none."""
    if origin == "run":
        return job.cost(system)
    return {
        "ttft_s": _printed(job, system, published.TTFT),
        "full_s": _printed(job, system, published.LATENCY),
        "rtf": _printed(job, system, published.RTF),
        "ttft_stream_s": math.nan,
        "full_stream_s": math.nan,
        "rtf_stream": math.nan,
        "shared": 0.0,
        "bytes_per_hour": _printed(job, system, published.STORAGE),
        "peak_bytes": math.nan,
        "n": math.nan,
        "trajectories": math.nan,
    }


def costs(job: Comparison) -> Table:
    """Waiting and storage beside the overall score."""
    rows, told = [], apart(job.materials)
    for system, origin in job.systems:
        mark, found = dagger(job, system, origin), cost_of(job, system, origin)
        run = origin == "run"
        times = mark + SHARED * bool(found["shared"]) + APART * bool(told and run)
        cells = (
            Cell(job.shown(system, origin) + mark), _why(job, system, origin),
            _value(score(job, system, OVERALL), mark, origin),
            _cost(found["ttft_s"], duration, times, f"n {found['n']:.0f}" if run else "", origin),
            _cost(found["full_s"], duration, times, "", origin),
            _cost(found["rtf"], ratio, times, "", origin),
            _cost(found["ttft_stream_s"], duration, times, "", origin),
            _cost(found["full_stream_s"], duration, times, "", origin),
            _cost(found["rtf_stream"], ratio, times, "", origin),
            _cost(found["bytes_per_hour"], size, mark,
                  f"G {found['trajectories']:.0f}" if run else "", origin),
            _cost(found["peak_bytes"], size, mark, "", origin),
        )  # fmt: skip
        rows.append(Row(cells))
    columns = ("system", "comparable", "overall [%]", "first token, mean", "full response, mean",
               "real-time factor, mean", "first token, streaming", "full response, streaming",
               "real-time factor, streaming", "storage per hour of video",
               "peak state, mean")  # fmt: skip
    note = MARKED + "First token, full response and real-time factor as APM-Bench defines them: "
    note += "where input does not stream, from the prefix's first frame; from the request to its "
    note += (
        "complete reply; with all work up to the first token. Streaming: from the question, the "
    )
    note += "open clip and all preparation included; the memory's work (observing, ends and starts "
    note += "of sessions, notes) over seconds of video. No decoding anywhere. Storage is Eq. 2. "
    note += f"{SHARED} taken while trajectories, replies or processes shared a device. Times of "
    note += f"different machines cannot be held against each other. {told}"
    return Table("What a score costs", columns, tuple(rows), note, texts=2)


def _cost(value: float, form, mark: str, sub: str, origin: str) -> Cell:  # type: ignore[no-untyped-def]
    if math.isnan(value):
        return dash(NOT_PRINTED if origin == "published" else "nothing measured yet")
    if not value:
        return Cell(f"0{mark}", sub)
    return Cell(form(value) + mark, sub)


def _bench(job: Comparison):  # type: ignore[no-untyped-def]
    return next(iter(job.materials.values())).bench


def _capabilities(job: Comparison) -> tuple[str, ...]:
    return tuple(_bench(job).capabilities)


def told(job: Comparison) -> str:
    """How much is compared, in words."""
    runs, rows = len(job.runs), sum(origin == "published" for _, origin in job.systems)
    return f"{plural(runs, 'run')} beside {plural(rows, 'published row')}"
