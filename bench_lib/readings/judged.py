"""Which verdicts count in a report: those of one judge, on the replies as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_lib import prompts
from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Key, Verdict
from bench_lib.score.adaptive import quality_scores
from bench_lib.score.cases import Case
from bench_lib.score.family import akin
from bench_lib.score.judge import current, stored
from bench_lib.score.table import records

if TYPE_CHECKING:
    from bench_lib.readings.material import Material

RULES = "is a program that compares sentences with the reference, no model"


@dataclass(frozen=True)
class Judged:
    """Verdicts on the present replies of one judge. `note` is what a reader must know of it.

    `kin` names the family that judge and judged model share, empty where they share none; `stale`
    counts replies whose verdicts are on an earlier reply, annotation or rubric.
    """

    judge: str = ""
    verdicts: tuple[Verdict, ...] = ()
    note: str = ""
    kin: str = ""
    stale: int = 0
    program: bool = False


def judged(material: Material) -> Judged:
    """The verdicts that count; none where nobody has judged.

    Raises:
        BenchError: the wanted judge has not judged this run.
    """
    kept = stored(material.run)
    names = list(dict.fromkeys(v.judge for v in reversed(kept)))
    if material.judge and material.judge not in names:
        known = nearest(material.judge, names) if names else "nobody has judged it"
        raise BenchError(
            f"no verdict of judge {material.judge!r} on {material.run.folder.name}; {known}"
        )
    if not names:
        return Judged()
    chosen = str(material.facts.get("judge", ""))
    name = material.judge or (chosen if chosen in names else names[0])
    about = facts(material, name)
    kin = "" if about.get("program") else akin(name, str(material.facts.get("model", "")))
    own = [v for v in kept if v.judge == name]
    try:
        cases = cases_of(material, about.get("prompts", ""))
    except BenchError as error:
        stale = len(_scored(own))
        return Judged(name, (), f"verdicts of {name} are not counted: {error}", kin, stale)
    found = current(own, cases)
    waiting = {case.key for case in cases} - _scored(found)
    stale = len(waiting & _scored(own))
    note = f"{material.bench.verdicts_are} are those of {name}" + _note(
        about, found, len(names), stale
    )
    return Judged(name, tuple(found), note, kin, stale, bool(about.get("program")))


def _scored(verdicts: Sequence[Verdict]) -> set[Key]:
    return {v.key for v in verdicts if v.score is not None}


def metrics(material: Material) -> dict[str, Any]:
    """What metrics.json holds: all scores and, where a judge has judged, its part.

    The judge's part comes from the verdicts in the run's folder, so whoever writes the file, it is
    there; `stale_verdicts` counts those that no longer belong to a present reply.
    """
    found: dict[str, Any] = dict(material.found.metrics())
    if material.judged.judge:
        found["judge"] = material.judged.judge
        if material.bench.gated:
            found["quality"] = records(quality_scores(material.scored))
        found["stale_verdicts"] = material.judged.stale
    return found


def cases_of(material: Material, prompt_set: str = "", variant: Any = "plain") -> list[Case]:
    """What a judge is asked about a run, with the rubric named or the benchmark's own."""
    base = material.bench.rubric
    return material.bench.cases(material, prompts.load(prompt_set or base, base=base), variant)


def facts(material: Material, name: str) -> dict[str, Any]:
    """What the run has noted about a judge."""
    return dict(material.run.manifest().get("facts", {}).get("judges", {}).get(name, {}))


def _note(about: dict[str, Any], found: Sequence[Verdict], judges: int, stale: int) -> str:
    what = ""
    if about.get("program"):
        what += f", which {RULES}"
    if judges > 1:
        what += f", one of {judges} judges"
    failed = len({v.key for v in found if v.score is None})
    what += f"; {failed} calls failed and are missing" if failed else ""
    if stale:
        what += f"; {stale} verdicts are on earlier replies or another rubric and do not count"
    return what
