"""How far the judge can be trusted: with itself, with another judge, with people, with length."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from bench_lib.judge.job import Judging
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import plural
from bench_lib.schema import KEY, Verdict
from bench_lib.score import audit
from bench_lib.score.agreement import Agreement, agreement, scores_of, self_agreement
from bench_lib.score.stats import Estimate

ACCEPTED = 4
"""From this score on a reply counts as good where a judged rate is corrected."""
CHANGED = {
    "padded": "every reply made longer without saying more",
    "reversed": "the annotations in reverse order",
}


def itself(job: Judging) -> Table:
    """Agreement of the judge's repeats."""
    title = "The judge with itself"
    found = self_agreement(job.of(job.judge))
    if not found.replies:
        return Table(title, (), (), absent="One verdict a reply: give -p repeats 3 to see how "
                     "often the judge agrees with itself.")  # fmt: skip
    cells = (
        Cell(job.judge),
        Cell(f"{found.replies:,}"),
        Cell(f"{found.repeats:.1f}"),
        Cell(f"{100 * found.identical:.1f}"),
        Cell(f"{100 * found.pairwise:.1f}"),
        Cell(f"{found.spread:.2f}"),
    )
    columns = (
        "judge", "replies", "verdicts each", "all the same [%]", "equal pairs [%]",
        "spread [points]",
    )  # fmt: skip
    return Table(title, columns, (Row(cells),), "Repeats differ by their seed alone.")


def shifts(job: Judging) -> Table:
    """Mean change of score under each variant, and between two judges."""
    title = "What should not change a grade"
    rows = []
    plain = job.of(job.judge)
    for variant in job.params.variants:
        rows.append(_shift(CHANGED[variant], plain, job.of(job.judge, variant), job))
    if job.params.beside:
        other = job.of(job.params.beside)
        rows.append(_shift(f"another judge, {job.params.beside}", plain, other, job))
    if not rows:
        known = sorted({v.judge for v in job.verdicts} - {job.judge})
        more = f" Other judges of this run: {', '.join(known)} (-p beside NAME)." if known else ""
        absent = "Not asked for: give -y 'variants: [padded, reversed]' for length and order."
        return Table(title, (), (), absent=absent + more)
    columns = ("", "mean change [points]", "95 % interval", "replies", "trajectories",
               "changed [%]")  # fmt: skip
    return Table(title, columns, tuple(rows), "Against the same judge on the replies as they are.")


def _shift(label: str, first: Sequence[Verdict], second: Sequence[Verdict], job: Judging) -> Row:
    found, share = audit.shift(first, second)
    cells = _estimate(found, "{:+.2f}")
    changed = (
        dash("no reply judged both times") if math.isnan(share) else Cell(f"{100 * share:.1f}")
    )
    return Row((Cell(label), *cells, changed))


def _estimate(found: Estimate, form: str = "{:.2f}") -> tuple[Cell, ...]:
    """Value, interval, n and trajectories."""
    missing = math.isnan(found.value)
    why = found.note if found.note not in ("", "n = 0") else "nothing judged both times"
    between = dash(found.note or "no interval")
    if not math.isnan(found.low):
        between = Cell(f"{form.format(found.low)} to {form.format(found.high)}")
    return (
        dash(why) if missing else Cell(form.format(found.value)),
        dash(why) if missing else between,
        Cell(f"{found.n:,}"),
        Cell(f"{found.clusters:,}"),
    )


def length(job: Judging) -> Table:
    """Rank correlation of a reply's length with its score."""
    title = "Length of a reply and its score"
    means = scores_of(job.of(job.judge)).groupby(KEY)["score"].mean()
    rows = [
        (r.task, len(f"{r.text} {r.reason}".split()), means.get(r.key, math.nan))
        for r in job.material.responses
        if r.key in means.index
    ]
    if not rows:
        return Table(title, (), (), absent="No reply has a score yet.")
    found = audit.verbosity(pd.DataFrame(rows, columns=["task", "words", "score"]))
    lines = []
    for _, one in found.iterrows():
        rho = dash(str(one["note"])) if math.isnan(one["rho"]) else Cell(f"{one['rho']:+.2f}")
        kind = "mean" if one["group"] == "all" else "plain"
        lines.append(Row((Cell(str(one["group"])), rho, Cell(f"{one['n']:,}")), kind))
    note = "Spearman. Long replies can be better; only the padded variant shows a bias."
    return Table(title, ("task", "rank correlation", "replies"), tuple(lines), note)


def people(job: Judging) -> Iterator[Table]:
    """Agreement with human labels, confusion, and the judged rate corrected by them."""
    title = "The judge and people"
    if not job.params.labels:
        absent = "No labels: give -p labels FILE, a CSV with candidate, probe and score (1 to 5)."
        yield Table(title, (), (), absent=absent)
        return
    both = job.labelled()
    strangers = int((both["trajectory"] == "").sum())
    unjudged = int((both["judge"].isna() & (both["trajectory"] != "")).sum())
    known = both[both["judge"].notna()]
    left = f"{unjudged} labelled replies have no score of the judge"
    left += f", {strangers} labels belong to no candidate of this run." if strangers else "."
    if known.empty:
        yield Table(title, (), (), absent=f"n = 0: {left}")
        return
    found = agreement(known, "human", "judge")
    yield _agreement(title, found, left)
    yield _confusion(found)
    yield _corrected(job, known)


def _agreement(title: str, found: Agreement, left: str) -> Table:
    names = {"raw": "same score", "kappa": "kappa", "weighted": "kappa, quadratic weights"}
    rows = [Row((Cell(label), *_estimate(getattr(found, name)))) for name, label in names.items()]
    note = f"{left} The judge is {found.mean_difference:+.2f} points from people on average."
    columns = ("", "value", "95 % interval", "labels", "trajectories")
    return Table(title, columns, tuple(rows), note)


def _confusion(found: Agreement) -> Table:
    rows = [
        Row((Cell(f"people: {score}"), *(Cell(f"{count:,}") for count in counts)))
        for score, counts in zip(found.confusion.index, found.confusion.to_numpy(), strict=True)
    ]
    columns = ("", *(f"judge: {score}" for score in found.confusion.columns))
    return Table("Where they differ", columns, tuple(rows))


def _corrected(job: Judging, known: pd.DataFrame) -> Table:
    good = known.assign(
        judge=(known["judge"] >= ACCEPTED).astype(int),
        human=(known["human"] >= ACCEPTED).astype(int),
    )
    calls = job.material.scored.adaptive
    calls = calls[calls["judged"].notna()]
    rate = audit.corrected_rate(
        calls.assign(judge=(calls["judged"].round() >= ACCEPTED).astype(int)), good
    )
    shown = [
        dash("needs labels of both kinds") if math.isnan(value) else Cell(f"{100 * value:.1f}")
        for value in (rate.judged, rate.sensitivity, rate.specificity)
    ]
    percent = Estimate(
        **{**vars(rate.rate), "value": 100 * rate.rate.value, "low": 100 * rate.rate.low,
           "high": 100 * rate.rate.high}
    )  # fmt: skip
    columns = (
        "", f"judged {ACCEPTED} or 5 [%]", "sensitivity [%]", "specificity [%]", "corrected [%]",
        "95 % interval", "replies", "trajectories",
    )  # fmt: skip
    cells = (Cell("good replies"), *shown, *_estimate(percent, "{:.1f}"))
    note = f"Share of good replies ({ACCEPTED} or 5 by the labels), corrected for the judge's "
    note += f"errors on {plural(len(good), 'label')} (Rogan and Gladen)."
    return Table("Share of good replies", columns, (Row(cells),), note)
