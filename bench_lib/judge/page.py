"""04_judge as sections: in the notebook one by one, in the report one below the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench_lib import paths
from bench_lib.evaluate import page
from bench_lib.files import write_whole
from bench_lib.judge import audit as judge_audit
from bench_lib.judge import figures as judge_figures
from bench_lib.judge import tables as judge_tables
from bench_lib.judge.job import FIRST, Judging
from bench_lib.messages.chat import Text
from bench_lib.readings.found import line
from bench_lib.report import analysis_tables, exports, header
from bench_lib.report.caveats import caveats
from bench_lib.report.header import Tile
from bench_lib.report.score_table import why_missing
from bench_lib.report.sections import Listing, Page, Piece, Section, section
from bench_lib.report.tables import Cell, Row, Table
from bench_lib.report.text import DASH, percent, plural
from bench_lib.report.theme import colour
from bench_lib.score.adaptive import AVERAGE, POOLED, quality_scores
from bench_lib.score.aggregate import OVERALL
from bench_lib.score.family import akin

UNGATED = Table("", (), (), absent="None: no gate comes before the judge of this benchmark.")
RULE_JUDGE = "the dollhouse's rule judge: it compares sentences with the reference, it is no model"


def run(job: Judging) -> Section:
    """What is judged by whom, or how to make a run."""
    title = "The run and the judge"
    if job.absent:
        return Section(title, pieces=(Listing("A run that can be judged in a minute", FIRST),))
    rows = tuple(Row((Cell(name), Cell(value))) for name, value in _facts(job))
    return Section(title, pieces=(Table(title, ("", ""), rows, texts=2),))


def _facts(job: Judging) -> tuple[tuple[str, str], ...]:
    material, params = job.material, job.params
    judge = f"{job.judge}, {RULE_JUDGE}" if job.chat.program else job.judge
    return (
        ("run", material.run.folder.name),
        ("method", f"{material.params.method}, served by {material.facts.get('model', DASH)}"),
        ("condition", material.params.condition.replace("_", " ")),
        ("source", material.params.source),
        ("judge", judge),
        ("kinship", _kinship(job)),
        ("rubric", job.prompts),
        ("repeats", f"{params.repeats}"),
        ("decoding", f"temperature {params.temperature:g}, up to {params.max_new_tokens} tokens"),
    )


def _kinship(job: Judging) -> str:
    kin = "" if job.chat.program else akin(job.judge, str(job.material.facts.get("model", "")))
    if not kin:
        return "none known between judge and judged model"
    return f"judge and judged model share {kin}: expect self-preference, use another judge"


@section("What passed the gate", "Only these replies are sent to the judge.")
def gate(job: Judging) -> Iterator[Piece]:
    """Counts of scored, passed, judged and waiting replies."""
    if job.bench.gated:
        yield judge_tables.gate(job.material)
    else:
        yield from job.bench.outcomes(job.material)


@section("What the judge is sent", "The first case; the reply is data and cannot grade itself.")
def prompt(job: Judging) -> Iterator[Piece]:
    """One rendered request."""
    cases = job.cases()
    if not cases:
        yield Table("Request", (), (), absent="n = 0: no adaptive reply passed the gate.")
        return
    for message in cases[0].messages:
        text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
        where = ", ".join(cases[0].key[1:])
        yield Listing(f"{message.role} message ({where})", text)


@section("Calls", "Accepted verdicts are kept for good; failed calls are asked again next time.")
def calls(job: Judging) -> Iterator[Piece]:
    """What judging did, and what it cost."""
    rows = []
    for variant, one in job.outcomes.items():
        counts = (one.wanted, one.kept, one.accepted, one.failed)
        state = one.left or ("complete" if one.complete else "run it again for the failed ones")
        cells = [Cell(variant), *(Cell(f"{n:,}") for n in counts), Cell(state)]
        rows.append(Row(tuple(cells)))
    columns = ("replies", "wanted", "kept", "accepted now", "failed now", "state")
    if rows:
        yield Table("This pass", columns, tuple(rows))
    yield _cost(job)


def _cost(job: Judging) -> Table:
    known = [v for v in job.verdicts if v.judge == job.judge]
    accepted = [v for v in known if v.score is not None]
    if not known:
        return Table("Cost", (), (), absent="No call was made yet.")
    used = {
        name: sum(v.usage.get(name, 0) for v in accepted)
        for name in ("prompt_tokens", "completion_tokens")
    }
    prices = [float(job.params.judge_args.get(name, 0.0)) for name in ("price_in", "price_out")]
    tokens = [Cell(f"{n:,}") if n else Cell("N/A") for n in used.values()]
    money = Cell("N/A")
    if any(prices):
        money = Cell(f"{sum(n * p for n, p in zip(used.values(), prices, strict=True)) / 1e6:.4f}")
    cells = (
        Cell(job.judge),
        Cell(f"{len(accepted):,}"),
        Cell(f"{len(known) - len(accepted):,}"),
        *tokens,
        money,
    )
    columns = (
        "judge", "accepted verdicts", "failed calls", "prompt tokens", "completion tokens", "cost",
    )  # fmt: skip
    note = "All passes of this judge over this run. Cost by judge_args price_in and price_out, "
    note += "per million tokens; a program counts no tokens."
    return Table("Cost", columns, (Row(cells),), note)


@section("Scores that were given")
def distribution(job: Judging) -> Iterator[Piece]:
    """The distribution of scores and of the judge's marks."""
    verdicts = job.of(job.judge)
    if not job.bench.gated:
        yield from job.bench.given(job.material, verdicts)
        return
    yield judge_figures.distribution(job.material, verdicts)
    yield judge_tables.checks(verdicts)


@section("Gated Judge")
def scores(job: Judging) -> Iterator[Piece]:
    """The main scores."""
    if job.bench.gated:
        yield judge_tables.scores(job.material)
    else:
        yield from job.bench.scores(job.material)


@section("Decisions")
def decisions(job: Judging) -> Iterator[Piece]:
    """Decision balanced accuracy."""
    yield judge_tables.decisions(job.material) if job.bench.gated else UNGATED


@section("Quality after the gate")
def quality(job: Judging) -> Iterator[Piece]:
    """Response quality with pass rates."""
    yield judge_tables.quality(job.material) if job.bench.gated else UNGATED


@section("Beside what needs no video", "Constant replies and learnt priors on the same asks.")
def baselines(job: Judging) -> Iterator[Piece]:
    """Shortcut baselines."""
    yield analysis_tables.baselines(job.material) if job.bench.gated else UNGATED


@section("What the scores hang on", "Distance, gap, evidence and history; and when it spoke.")
def strata(job: Judging) -> Iterator[Piece]:
    """Every score by stratum, failures by history; and what the method did."""
    yield from job.bench.strata(job.material)


@section("Failures by kind")
def failed(job: Judging) -> Iterator[Piece]:
    """Unreadable replies, and replies without a verdict."""
    if job.bench.gated:
        yield judge_tables.format_failures(job.material)
        yield judge_tables.judge_failures(job.material)
    else:
        yield from job.bench.unusable(job.material)


@section("How far the judge can be trusted")
def audit(job: Judging) -> Iterator[Piece]:
    """Agreement with itself, with people, and what should not change a grade."""
    yield judge_audit.itself(job)
    yield judge_audit.shifts(job)
    yield judge_audit.length(job)
    yield from judge_audit.people(job)


def write(job: Judging) -> Section:
    """Write metrics, the run's own report, and this page; say where they are."""
    if job.absent:
        return Section("Written", absent=f"Nothing. {job.absent}")
    material = job.material
    report = page.save(material)
    home = path(job).with_suffix("")
    files = [
        (report, "the run's report, now with its gated judge scores"),
        (material.run.folder / "metrics.json", "every score with its n"),
    ]
    files = [*exports.save_page(of(job), home), *files]
    if job.bench.gated:
        files.append((_strata(job, home / "scores_by_stratum.csv"), "every score in every stratum"))
    return exports.written(files)


def path(job: Judging) -> Path:
    """Where the report of this judge on this run lies."""
    mark = "".join(c if c.isalnum() or c in "-._" else "_" for c in job.judge)[:60]
    return paths.outputs() / f"04_judge-{job.material.run.folder.name}-{mark}.html"


def _strata(job: Judging, place: Path) -> Path:
    frame = analysis_tables.long(job.material)
    return write_whole(place, frame.to_csv(index=False, lineterminator="\n"))


def of(job: Judging) -> Page:
    """The whole report."""
    material = job.material
    verdicts = sum(v.score is not None for v in job.of(job.judge))
    name = material.label
    parts = [gate(job), calls(job), distribution(job), scores(job)]
    if not job.bench.gated:
        parts[0] = replace(parts[0], title="What was asked", note="")
        parts[3] = replace(parts[3], title="Accuracy")
    else:
        parts += [baselines(job), decisions(job), quality(job)]
    parts += [strata(job), *job.bench.acts(material), failed(job), audit(job), prompt(job)]
    return Page(
        "Judge report",
        f"{name} on {material.params.source}, judged",
        f"{plural(verdicts, 'verdict')} of {job.judge} · {material.params.condition} condition",
        tuple(parts),
        tuple(caveats(material)),
        tuple(_tiles(job)),
        (("Run and judge", _facts(job)),),
    )


def _tiles(job: Judging) -> Iterator[Tile]:
    found = job.material.found
    cases = len(job.cases())
    done = len({v.key for v in job.of(job.judge) if v.score is not None})
    yield Tile("judged", f"{done:,}", f"of {plural(cases, 'passed reply', 'passed replies')}")
    judged = [name for name in job.bench.capabilities if found.adaptive(name)]
    if not (job.bench.gated and judged):
        yield from header.scores(job.material)
        return
    lines = {
        "Gated Judge": (line(found.capabilities, judged[0]), "mean of the adaptive tasks"),
        "Decisions": (line(found.decisions, POOLED, "balanced accuracy"), "balanced accuracy"),
        "Quality": (line(quality_scores(job.material.scored), AVERAGE), "after the gate"),
        OVERALL: (line(found.capabilities, OVERALL), "mean of the capabilities"),
    }
    for name, (one, what) in lines.items():
        shade = colour("" if name == OVERALL else judged[0])
        if math.isnan(one["value"]):
            yield Tile(name, DASH, why_missing(one), shade)
        else:
            groups = plural(one["clusters"], "trajectory", "trajectories")
            yield Tile(name, percent(one["value"]), f"{what}, n {one['n']:,}, {groups}", shade)
