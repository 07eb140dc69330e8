"""What the numbers of a run depend on and a reader must know first, in plain sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bench_lib.readings.material import Material
from bench_lib.readings.origins import codes, devices
from bench_lib.readings.times import untimed
from bench_lib.report.spans import overlapping, spans
from bench_lib.report.text import plural
from bench_lib.runs.identity import FORMAT

SHOWN = 6
"""Details listed under a caveat; the rest is counted."""
SAME_REPLY = 0.5
"""Share of replies with one and the same text from which it is said."""


@dataclass(frozen=True)
class Caveat:
    """A sentence and its details. `grave`: the numbers mean nothing, or something is broken."""

    text: str
    details: tuple[str, ...] = ()
    grave: bool = False


def caveats(material: Material) -> list[Caveat]:
    """All that applies, the gravest first."""
    found = [
        *_model(material),
        *_ends(material),
        *_data(material),
        *_missing(material),
        *_replies(material),
        *_judge(material),
        *_selection(material),
        *shared_times(material),
        *_untimed(material),
        *_code(material),
    ]
    return sorted(found, key=lambda caveat: not caveat.grave)


def _model(material: Material) -> Iterator[Caveat]:
    facts = material.facts
    if facts.get("model_note"):
        yield Caveat(_sentence(facts["model_note"]), grave=True)
    elif facts.get("model") == "none":
        yield Caveat("No model serves this method: its replies are fixed, not answers.", grave=True)


def _ends(material: Material) -> Iterator[Caveat]:
    """Where a setting lets replies pass that do not say whether they are whole."""
    judges = material.facts.get("judges", {})
    named = {"the model": material.facts.get("model_identity", {})}
    named |= {f"judge {name}": about.get("args", {}) for name, about in judges.items()}
    for who, settings in named.items():
        if settings.get("finish") == "assumed":
            yield Caveat(
                f"The server of {who} does not say why a reply ended (finish: assumed): replies "
                "that were cut count as whole.",
                grave=True,
            )


def _data(material: Material) -> Iterator[Caveat]:
    if material.manifest.get("format", 1) < FORMAT:
        yield Caveat(
            "The run was made before runs knew their data by content: nothing tells whether the "
            "source is still the one that it was asked about, and the rules by which its replies "
            "were read may have changed. The same command begins a new run.",
            grave=True,
        )
    if material.facts.get("source_note"):
        yield Caveat(_sentence(material.facts["source_note"]))
    quarantined = material.facts.get("quarantined", [])
    if quarantined:
        yield Caveat(
            f"{plural(len(quarantined), 'record')} of the source left out or mended as faulty.",
            _some(quarantined),
        )
    if material.unread:
        yield Caveat(
            "The source could not be read again: asks without a record are not counted, and "
            f"questions and frames are not shown ({material.unread}).",
            grave=True,
        )


def _missing(material: Material) -> Iterator[Caveat]:
    broken = [f"{r['trajectory']} {r['session']}: {r['error']}" for r in material.sessions]
    broken = list(dict.fromkeys(text for text in broken if not text.endswith(": ")))
    if broken:
        yield Caveat(
            f"{plural(len(broken), 'session')} could not be read; asks put there are errors.",
            _some(broken),
            grave=True,
        )
    lacking = [r for r in material.responses if r.missing_sessions and r.status != "error"]
    if lacking:
        yield Caveat(
            f"{plural(len(lacking), 'ask was', 'asks were')} answered from a memory that lacks "
            "sessions which could not be read.",
            _some([f"{r.candidate} {r.probe}: {', '.join(r.missing_sessions)}" for r in lacking]),
            grave=True,
        )
    total = len(material.responses)
    for status, words in (
        ("error", "ended in an error: missing, not wrong"),
        ("refused", "declined by the model or its filter: not passed"),
        ("not_run", "not asked yet: missing, not wrong"),
    ):
        failed = [r for r in material.responses if r.status == status]
        if failed:
            reasons = Counter(r.error or "no reason given" for r in failed)
            yield Caveat(
                f"{len(failed):,} of {plural(total, 'ask')} {words}.",
                ()
                if status == "not_run"
                else _some([f"{n} x {reason}" for reason, n in reasons.most_common()]),
                grave=status == "error",
            )


def _replies(material: Material) -> Iterator[Caveat]:
    answered = [r for r in material.responses if r.status in ("ok", "repaired", "unparsed")]
    unparsed = [r for r in answered if r.status == "unparsed"]
    if unparsed:
        reasons = Counter(r.error or "no reason given" for r in unparsed)
        yield Caveat(
            f"{len(unparsed):,} of {plural(len(answered), 'reply', 'replies')} could not be "
            "parsed; by the protocol they count as wrong.",
            _some([f"{n} x {reason}" for reason, n in reasons.most_common()]),
        )
    cut = sum(r.stop == "length" for r in answered)
    if cut:
        yield Caveat(
            f"{cut:,} of {plural(len(answered), 'reply was', 'replies were')} cut at the token "
            "limit (parameter max_new_tokens)."
        )
    texts = Counter(r.raw_text for r in answered)
    if len(answered) >= 4 and texts.most_common(1)[0][1] > SAME_REPLY * len(answered):
        same = texts.most_common(1)[0][1]
        yield Caveat(f"{same:,} of {len(answered):,} replies are one and the same text.")


def _judge(material: Material) -> Iterator[Caveat]:
    if material.unread:
        return
    if material.judged.note:
        yield Caveat(_sentence(material.judged.note))
    kin = material.judged.kin
    if kin:
        what = "are one model" if kin == "the same model" else f"are of one family, {kin}"
        yield Caveat(
            f"The judge and the judged model {what}: judges prefer what their own kind writes. "
            "Judge with another family before comparing scores.",
            grave=True,
        )


def _selection(material: Material) -> Iterator[Caveat]:
    params = material.params
    parts = [
        f"{name}: {value if isinstance(value, int) else ', '.join(map(str, value))}"
        for name, value in (
            ("limit", params.limit),
            ("tasks", params.tasks),
            ("trajectories", params.trajectories),
        )
        if value
    ]
    if parts:
        yield Caveat(f"Only a part of the source was chosen ({'; '.join(parts)}).")
    beyond = len(material.responses) - len(material.asks)
    if beyond and not material.unread:
        yield Caveat(
            f"{plural(beyond, 'answer')} of an earlier, wider selection of this run counted too."
        )


def shared_times(material: Material) -> Iterator[Caveat]:
    """Why times are not those of one trajectory that has the device to itself."""
    processes = material.manifest.get("processes", [])
    workers = max((p["params"].get("workers", 1) for p in processes), default=1)
    if workers > 1:
        yield Caveat(f"Timings were taken while {workers} trajectories shared the machine.")
    at_once = material.facts.get("replies_at_once", 1)
    if at_once > 1:
        yield Caveat(f"Up to {at_once} replies were asked for at a time; their waits overlap.")
    found = devices(material)
    if len(found) > 1:
        told = ", ".join(f"{n:,} on {device}" for device, n in found.most_common())
        yield Caveat(f"Times were taken on different devices: {told}.")
    together = overlapping(spans(material.run.folder))
    if together > 1:
        yield Caveat(f"Timings were taken while up to {together} processes worked at once.")


def _untimed(material: Material) -> Iterator[Caveat]:
    count = untimed(material)
    if count:
        yield Caveat(
            f"{plural(count, 'answer was', 'answers were')} made before all work of a method was "
            "timed: the real-time factor and what rests on the memory's work leave them out."
        )


def _code(material: Material) -> Iterator[Caveat]:
    found = codes(material)
    if len(found) > 1:
        told = ", ".join(f"{n:,} by {code}" for code, n in found.most_common())
        yield Caveat(f"Answers were given by different code: {told}.", grave=True)
    processes = material.manifest.get("processes", [])
    revisions = [p.get("revision") or "unknown" for p in processes]
    if any(revision.endswith("+") for revision in revisions):
        yield Caveat("The code had changes that no revision holds (marked +).")


def _some(items: list[str]) -> tuple[str, ...]:
    rest = len(items) - SHOWN
    return (*items[:SHOWN], *([f"and {rest:,} more"] if rest > 0 else []))


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!")) else ".")
