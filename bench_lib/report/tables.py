"""Tables as cells: each number with its n, each gap a dash with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from bench_lib import measure
from bench_lib.readings.material import OUTCOMES, Material
from bench_lib.report.text import DASH, duration, size
from bench_lib.report.theme import colour
from bench_lib.score import storage
from bench_lib.score.storage import PriorState


@dataclass(frozen=True)
class Cell:
    """`sub` is set smaller beside the text, `why` becomes a footnote.

    `bar` draws a bar of 0 to 100, `low` and `high` the interval on it.
    """

    text: str
    sub: str = ""
    why: str = ""
    bar: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """A row; `kind` is `plain`, `group` (a heading) or `mean`; `colour` marks its capability."""

    cells: tuple[Cell, ...]
    kind: str = "plain"
    colour: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its heading row, or the reason why there is none.

    The first `texts` columns hold words, the others numbers; `stacked` sets what is small below
    the number instead of beside it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""
    texts: int = 1
    absent: str = ""
    stacked: bool = False
    reasons: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        reasons = dict.fromkeys(c.why for row in self.rows for c in row.cells if c.why)
        object.__setattr__(self, "reasons", tuple(reasons))

    def mark(self, cell: Cell) -> str:
        """The footnote letter of a cell, empty where it has none."""
        return _letter(self.reasons.index(cell.why)) if cell.why else ""

    @property
    def footnotes(self) -> tuple[tuple[str, str], ...]:
        """Letters and reasons."""
        return tuple((_letter(i), reason) for i, reason in enumerate(self.reasons))


def _letter(index: int) -> str:
    return (
        chr(ord("a") + index) if index < 26 else f"{_letter(index // 26 - 1)}{_letter(index % 26)}"
    )


def dash(why: str) -> Cell:
    """A missing value and the reason."""
    return Cell(DASH, why=why)


def source_files(material: Material) -> Table:
    """How the source's files were taken, and every problem with them; empty where it has none."""
    taken = [Row(tuple(map(Cell, line))) for line in material.facts.get("taken", [])]
    wrong = [
        Row((Cell("problem"), Cell(""), Cell(text)))
        for text in material.facts.get("quarantined", [])
    ]
    title = "How the source's files were taken"
    return Table(title, ("what", "taken", "how"), (*taken, *wrong), texts=3)


def statuses(material: Material) -> Table:
    """What became of the asks, by task and polarity."""
    rows = []
    for label, capability, group in by_task(material):
        counts = group["outcome"].value_counts()
        cells = [Cell(label), Cell(f"{len(group):,}")]
        cells += [Cell(f"{counts.get(name, 0):,}") for name in OUTCOMES]
        cells += [
            Cell(f"{int((group['status'] == 'repaired').sum()):,}"),
            Cell(f"{int(group['cut'].sum()):,}"),
        ]
        rows.append(Row(tuple(cells), colour=colour(capability)))
    titles = ("task", "asks", *(name.replace("_", " ") for name in OUTCOMES), "repaired", "cut")
    return Table(
        "What became of each ask",
        titles,
        tuple(rows),
        "The outcomes add up to the asks; repaired and cut count replies among them. + and − are "
        "positive probes (INTERVENE is right) and negative ones (SILENT is right); … are dense "
        "probes, which have no right answer.",
    )


SIGNS = {"question": "", "positive": " +", "negative": " −", "dense": " …"}
"""What stands behind a task's code for each polarity."""


def by_task(material: Material) -> Iterable[tuple[str, str, pd.DataFrame]]:
    """Label, capability and rows of each task that was asked; polarities of a task apart."""
    answers = material.answers
    known = [task.code for task in material.bench.tasks]
    codes = sorted(answers["task"].unique(), key=lambda c: known.index(c) if c in known else 99)
    for code in codes:
        of_task = answers[answers["task"] == code]
        for polarity, sign in (
            ("question", ""),
            ("positive", " +"),
            ("negative", " −"),
            ("dense", " …"),
        ):
            group = of_task[of_task["polarity"] == polarity]
            if len(group):
                yield f"{code}{sign}", str(group["capability"].iloc[0]), group


def peaks(material: Material) -> pd.DataFrame:
    """Per trajectory its largest state of completed sessions (`bench_lib.score.storage.peaks`)."""
    states = zip(
        *(material.stretches[n] for n in ("trajectory", "prior_s", "prior_bytes")), strict=True
    )
    return storage.peaks(PriorState(name, prior_s / 3600, size) for name, prior_s, size in states)


def state(material: Material) -> Table:
    """The largest memory of completed sessions of each trajectory, and their mean."""
    found = peaks(material)
    columns = ("hours", "peak_bytes", "bytes_per_hour")
    lines = list(zip(found["trajectory"], *(found[name] for name in columns), strict=True))
    if lines:
        lines.append((f"mean of {len(found):,}", *(float(found[name].mean()) for name in columns)))
    rows = [
        Row(
            (Cell(name), Cell(size(peak)), Cell(duration(hours * 3600)), Cell(size(per_hour))),
            "mean" if at == len(found) else "plain",
        )
        for at, (name, hours, peak, per_hour) in enumerate(lines)
    ]
    missing = material.stretches["trajectory"].nunique() - len(found)
    note = "Measured when a session begins, so the current one is not in it. The mean per hour is "
    note += "the storage per hour of APM-Bench (Eq. 2)."
    if missing:
        note += f" {missing:,} more have no second session yet."
    saves = [r for r in material.run.read("saves") if r["on_disk"]]
    if saves:
        top = max(saves, key=lambda r: r["on_disk"])
        note += f" Saved ({top['form']}), the largest takes {size(top['on_disk'])} on disk for "
        note += f"{size(top['exact'])} in memory; {size(sum(r['written'] for r in saves))} were "
        note += f"written in {len(saves):,} saves."
    return Table(
        "Largest memory of earlier sessions",
        ("trajectory", "peak state", "earlier video then", "per hour of it"),
        tuple(rows),
        note,
    )


def work(material: Material) -> Table:
    """Exact counts of work: once for the stream, and on the branches of the asks."""
    stream: dict[str, int] = {}
    branches: dict[str, int] = {}
    for record in material.sessions:
        for name, count in record["counters"].items():
            stream[name] = stream.get(name, 0) + count
    for response in material.responses:
        for name, count in response.counters.items():
            branches[name] = branches.get(name, 0) + count
    names = [n for n in measure.NAMES if n in stream or n in branches]
    names += sorted({*stream, *branches} - set(names))
    rows = [
        Row(
            (
                Cell(name.replace("_", " ")),
                Cell(f"{stream.get(name, 0):,}"),
                Cell(f"{branches.get(name, 0):,}"),
            )
        )
        for name in names
    ]
    note = "Counted, not sampled: the same run gives the same numbers on every machine."
    if material.repeated_sessions:
        note += (
            f" {material.repeated_sessions:,} walks of a session were done again after a restart "
            "or for later asks and are not counted."
        )
    return Table("Work", ("counter", "on the stream", "on branches"), tuple(rows), note)
