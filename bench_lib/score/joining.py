"""Which record of an instance counts where there are several: one rule for every benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bench_lib.errors import BenchError, nearest
from bench_lib.schema import Key, Response, Verdict

FAILED = ("error", "not_run")


def newest(
    responses: Iterable[Response], wanted: set[Key], notes: list[str]
) -> dict[Key, Response]:
    """Responses by key: the newest that did not fail, else the newest; oddities go to `notes`."""
    found: dict[Key, Response] = {}
    strangers, changed, seen = 0, 0, Counter[Key]()
    for response in responses:
        key = response.key
        if key not in wanted:
            strangers += 1
            continue
        seen[key] += response.status not in FAILED
        old = found.get(key)
        if old and old.status not in FAILED and response.status not in FAILED:
            changed += old.raw_text != response.raw_text
        if old is None or response.status not in FAILED or old.status in FAILED:
            found[key] = response
    repeated = sum(count > 1 for count in seen.values())
    if repeated:
        notes.append(
            f"{repeated} instances were answered more than once, {changed} replies differed from "
            "the one before; the newest counts"
        )
    if strangers:
        notes.append(f"{strangers} responses belong to no expected instance and are left out")
    return found


def graded(
    verdicts: Iterable[Verdict], judge: str, grades: range
) -> tuple[dict[Key, list[int]], dict[Key, str], str]:
    """Valid scores by key, one per repeat, the last error by key, and the judge's name.

    Raises:
        BenchError: verdicts of several judges without a choice, or one that is none of `grades`.
    """
    listed = list(verdicts)
    names = sorted({verdict.judge for verdict in listed})
    if judge and judge not in names and listed:
        raise BenchError(f"no verdict of judge {judge!r}; {nearest(judge, names)}")
    if not judge and len(names) > 1:
        raise BenchError(f"verdicts of {len(names)} judges; choose one: {', '.join(names)}")
    judge = judge or (names[0] if names else "")
    scores: dict[Key, dict[int, int]] = {}
    errors: dict[Key, str] = {}
    for verdict in listed:
        if verdict.judge != judge:
            continue
        key = verdict.key
        if verdict.score is None:
            errors[key] = verdict.error or "no score"
        elif verdict.score not in grades:
            low, high = grades[0], grades[-1]
            told = (
                f"lies outside {low} to {high}"
                if high - low > 1
                else f"is neither {low} nor {high}"
            )
            raise BenchError(
                f"judge score {verdict.score} of {' '.join(key)} {told}; such a reply must be "
                "stored as an error"
            )
        else:
            scores.setdefault(key, {})[verdict.repeat] = verdict.score
    return {key: list(found.values()) for key, found in scores.items()}, errors, judge
