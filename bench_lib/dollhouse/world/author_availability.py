"""The availability set: is the evidence in the two newest completed sessions or not?

From cross-session candidates of the same world: a coarse time span is added to the question, a
fifth option says that the evidence does not suffice; half of the questions have all their evidence
within reach (APM-Bench, section 12 of its protocol).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench_lib.dollhouse.world.sentences import AboutDays, NotEnough
from bench_lib.dollhouse.world.world import DAY_S, World
from bench_lib.schema import Candidate, Option

RECENT = 2


def transform(
    candidates: Sequence[Candidate], world: World, sessions: tuple[str, ...], name: str
) -> tuple[Candidate, ...]:
    """As many available as unavailable questions, in the order of their sources."""
    rng = np.random.default_rng((world.seed, 19))
    halves: dict[str, list[Candidate]] = {"available": [], "unavailable": []}
    for candidate in candidates:
        asked = sessions.index(candidate.probes[0].session)
        if asked > RECENT:
            places = [sessions.index(m.session) for m in candidate.evidence]
            within = all(place >= asked - RECENT for place in places)
            halves["available" if within else "unavailable"].append(candidate)
    n = min(map(len, halves.values()))
    chosen = []
    for half, own in halves.items():
        kept = sorted(rng.permutation(len(own))[:n])
        chosen += [_with_option(own[int(i)], half, world, sessions, name, rng) for i in kept]
    return tuple(sorted(chosen, key=lambda c: c.id))


def _with_option(
    candidate: Candidate,
    half: str,
    world: World,
    sessions: tuple[str, ...],
    name: str,
    rng: np.random.Generator,
) -> Candidate:
    days = sorted(
        world.films[sessions.index(m.session)].wall_start_s // DAY_S + 1 for m in candidate.evidence
    )
    last = world.films[sessions.index(candidate.probes[0].session)].wall_start_s // DAY_S + 1
    span = AboutDays(
        max(1, days[0] - int(rng.integers(2))), min(last, days[-1] + int(rng.integers(2)))
    )
    number = "-".join(candidate.id.split("-")[-2:])
    return candidate.model_copy(
        update={
            "id": f"{name}-{number}",
            "question": f"{candidate.question} {span.say()}",
            "options": (*candidate.options, Option(id="E", text=NotEnough().say())),
            "answer": candidate.answer if half == "available" else "E",
            "references": {"availability": half, "source_candidate_id": candidate.id},
        }
    )
