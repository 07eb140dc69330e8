"""One table with a row per runtime instance: what was expected, what came, what the judge said.

Every score is taken from this table, so missing replies, failed judge calls and unreadable replies
are counted in one place. Missing numbers are NaN; nothing becomes zero but a failed gate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import pandas as pd

from bench_lib.replies.gate import gate
from bench_lib.schema import KEY, SCORABLE, Key, Response, Trajectory, Verdict
from bench_lib.score.joining import graded, newest
from bench_lib.score.strata import strata
from bench_lib.tasks import APM_BENCH, Bench

GRADES = range(1, 6)


@dataclass(frozen=True)
class Instances:
    """Rows of one run with the benchmark they belong to; `notes` says what was odd in the records.

    Columns beside those of `strata`: `status`, `why`, `cut`, `repaired`, `option`, `decision`,
    `passed` (1, 0 or NaN), `scored`, `correct` (choice), `spoke` and `decided` (adaptive: said
    INTERVENE; decided as the polarity asks), `judged` (mean judge score or NaN), `unjudged`,
    `judge_error`, and `g`, the summand of Eq. 1: 0 for a failed gate, the judge's score for a
    passed one, NaN where there is none.
    """

    rows: pd.DataFrame
    bench: Bench
    judge: str = ""
    notes: tuple[str, ...] = ()

    def where(self, mask: pd.Series) -> Instances:
        """The same on some of the rows."""
        return replace(self, rows=self.rows[mask])

    @property
    def adaptive(self) -> pd.DataFrame:
        """Rows of adaptive tasks."""
        return self.rows[self.rows["adaptive"]]

    @property
    def choice(self) -> pd.DataFrame:
        """Rows of multiple-choice tasks with a key, less those of the availability set."""
        rows = self.rows
        return rows[~rows["adaptive"] & rows["answer"].notna() & (rows["availability"] == "")]


def instances(
    trajectories: Iterable[Trajectory],
    responses: Iterable[Response],
    verdicts: Iterable[Verdict] = (),
    *,
    bench: Bench = APM_BENCH,
    judge: str = "",
    asked: Collection[Key] | None = None,
) -> Instances:
    """Join records into rows, one per expected instance.

    `asked` limits what is expected (a run with a limit or chosen tasks); by default it is every
    probe of every candidate. An instance without a response is `not_run`.

    Raises:
        BenchError: verdicts of several judges without a choice, or a score outside 1 to 5.
    """
    table = strata(trajectories, bench)
    known = keys(table)
    if asked is not None:
        wanted = set(asked)
        table = table[pd.Series([key in wanted for key in known], index=table.index, dtype=bool)]
        known = [key for key in known if key in wanted]
    notes: list[str] = []
    found = newest(responses, set(known), notes)
    scores, errors, chosen = graded(verdicts, judge, GRADES)
    rows = []
    tasks = table["task"].to_numpy(dtype=object)
    polarities = table["polarity"].to_numpy(dtype=object)
    answers = table["answer"].to_numpy(dtype=object)
    for key, code, polarity, answer in zip(known, tasks, polarities, answers, strict=True):
        task, response = bench.task(code), found.get(key)
        passed = None if response is None else gate(task, polarity, response, answer)
        given = scores.get(key, [])
        asks_judge = passed is True and task.adaptive
        judged = sum(given) / len(given) if asks_judge and given else math.nan
        rows.append(
            (
                task.capability,
                task.adaptive,
                "not_run" if response is None else response.status,
                "" if response is None else response.error,
                response is not None and response.stop == "length",
                "" if response is None else "; ".join(response.repairs),
                None if response is None else response.option,
                None if response is None else response.decision,
                math.nan if passed is None else float(passed),
                judged,
                asks_judge and not given,
                errors.get(key, "not judged") if asks_judge and not given else "",
            )
        )
    joined = pd.DataFrame(rows, columns=_COLUMNS, index=table.index)
    return Instances(_derived(pd.concat([table, joined], axis=1)), bench, chosen, tuple(notes))


def keys(rows: pd.DataFrame) -> list[Key]:
    """The ask of each row."""
    return list(rows[KEY].astype(str).itertuples(index=False, name=None))


_COLUMNS = [
    "capability", "adaptive", "status", "why", "cut", "repaired", "option", "decision", "passed",
    "judged", "unjudged", "judge_error",
]  # fmt: skip


def _derived(rows: pd.DataFrame) -> pd.DataFrame:
    scored = rows["status"].isin(SCORABLE)
    adaptive = rows["adaptive"].astype(bool)
    wanted = rows["polarity"].map({"positive": "INTERVENE", "negative": "SILENT"})
    known = scored & adaptive & wanted.notna()
    g = rows["judged"].where(rows["passed"] == 1, rows["passed"])
    return rows.assign(
        adaptive=adaptive,
        scored=scored,
        correct=rows["passed"].where(~adaptive),
        spoke=(rows["decision"] == "INTERVENE").astype(float).where(scored & adaptive),
        decided=(rows["decision"] == wanted).astype(float).where(known),
        g=g.where(adaptive),
    )
