"""When a run spoke, what its intervals give away, and whether it says the same thing twice."""

from __future__ import annotations

import math

from bench_lib.readings.material import Material
from bench_lib.readings.repeats import repeats
from bench_lib.report.tables import Cell, Row, Table, dash
from bench_lib.report.text import plural
from bench_lib.report.theme import colour
from bench_lib.score import shortcuts, stats, timing
from bench_lib.score.repeats import Agreement

NOT_ADAPTIVE = "no adaptive task was asked"


def placements(material: Material) -> Table:
    """Where the first intervention lies against the ideal interval."""
    title = "First intervention against the ideal interval"
    data = None if material.unread else material.timed
    if data is None or data.rows.empty:
        return Table(title, (), (), absent=f"{title}: {material.unread or NOT_ADAPTIVE}.")
    found = timing.interventions(data, material.trajectories.values())
    if found.empty:
        return Table(title, (), (), absent=f"{title}: n = 0, no scored ask has an ideal interval.")
    counts, rows = timing.placements(found), []
    kinds = [str(kind) for kind in timing.PLACEMENTS]
    for task in [t for t in data.bench.tasks if t.code in counts.index]:
        lead = found.loc[found["task"] == task.code, "lead_s"].dropna()
        middle = Cell(f"{lead.median():+.1f}") if len(lead) else dash("it never spoke there")
        cells = [Cell(f"{counts.at[task.code, kind]!s}") for kind in kinds]
        n = Cell(f"{counts.at[task.code, 'n']!s}")
        rows.append(Row((Cell(task.code), *cells, middle, n), colour=colour(task.capability)))
    columns = ("task", *timing.PLACEMENTS, "median lead [s]", "candidates")
    note = "Candidates by their first INTERVENE in the session of the interval; lead is the time "
    note += "before the interval's start. It can only be as fine as the asks lie: "
    step = material.params.probe_every_s
    note += f"every {step:g} s here." if step else "probe_every_s puts them at a fixed step."
    return Table(title, columns, tuple(rows), note)


def hourly(material: Material) -> Table:
    """Interventions an hour under dense probing."""
    title = "Interventions an hour"
    step = material.params.probe_every_s
    if material.unread or not step:
        absent = f"{title}: {material.unread or 'give probe_every_s to 03_eval'}."
        return Table(title, (), (), absent=absent)
    data = material.timed
    found = timing.interventions_an_hour(data, step)
    if found.empty:
        return Table(title, (), (), absent=f"{title}: n = 0, no dense probe was scored.")
    rows = [
        Row(tuple(Cell(text) for text in (
            str(one["trajectory"]), f"{one['probes']:,}", f"{one['interventions']:,}",
            f"{one['hours']:.2f}", f"{one['per_hour']:.1f}",
        )))
        for _, one in found.iterrows()
    ]  # fmt: skip
    hours, count = found["hours"].sum(), found["interventions"].sum()
    total = (f"all {len(found):,}", f"{found['probes'].sum():,}", f"{count:,}", f"{hours:.2f}",
             f"{count / hours:.1f}")  # fmt: skip
    rows.append(Row(tuple(map(Cell, total)), "mean"))
    columns = ("trajectory", "dense probes", "interventions", "hours probed", "an hour")
    note = f"Each candidate asked every {step:g} s; a run of INTERVENE replies is one intervention."
    return Table(title, columns, tuple(rows), note)


def leak(material: Material) -> Table:
    """Whether the length of an announced interval gives its polarity away."""
    title = "What the length of an interval gives away"
    found = shortcuts.length_leak(material.trajectories.values())
    if found.empty:
        return Table(title, (), (), absent=f"{title}: n = 0, no task announces one.")
    rows = []
    for _, one in found.iterrows():
        sides = []
        for side in ("positive", "negative"):
            middle = one[f"{side}_median_s"]
            told = dash(f"no {side} probe") if math.isnan(middle) else Cell(f"{middle:.1f}")
            sides += [told, Cell(f"{one[f'{side}_n']:,}")]
        known = not math.isnan(one["separation"])
        apart = Cell(f"{one['separation']:.2f}") if known else dash("needs both polarities")
        rows.append(Row((Cell(str(one["task"])), *sides, apart)))
    columns = ("task", "median +, s", "n +", "median −, s", "n −", "separation")
    note = "Over the whole source. Separation is the chance that a positive interval is the shorter"
    note += " one: 0.5 gives nothing away, 0 and 1 everything."
    return Table(title, columns, tuple(rows), note)


def again(material: Material) -> Table:
    """How often asks that were put twice had the same reply."""
    title = "Asked a second time"
    texts, answers = repeats(material.run)
    if not texts.n:
        absent = f"{title}: none; repeat in 03_eval puts a number of asks a second time."
        return Table(title, (), (), absent=absent)
    rows = (_agreement("whole reply", texts), _agreement("option and decision", answers))
    columns = ("", "the same", "of", "[%]", "95 % interval", "distinct")
    note = (
        f"{plural(texts.n, 'ask')} went the whole way again, memory included, past every kept "
        "reply. Few distinct replies make agreement easy. Served models are not deterministic."
    )
    return Table(title, columns, rows, note)


def _agreement(name: str, found: Agreement) -> Row:
    low, high = stats.exact(found.equal, found.n)
    texts = (name, f"{found.equal:,}", f"{found.n:,}", f"{100 * found.share:.1f}",
             f"{100 * low:.1f} to {100 * high:.1f}", f"{found.distinct:,}")  # fmt: skip
    return Row(tuple(map(Cell, texts)))
