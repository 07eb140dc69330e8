"""What a benchmark gives away without any video: baselines that use no frame.

Each shortcut answers every instance it can and is scored like a method. Whatever it learns (the
commonest letter, a length, when it is time to speak) it learns from the other trajectories only.
Their replies have no text for a judge, so adaptive scores appear as the bounds between the worst
and the best text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from bench_lib.replies.gate import gate
from bench_lib.schema import Candidate, Decision, Key, Probe, Response, Trajectory
from bench_lib.score import learners, side_info
from bench_lib.score.adaptive import decision_scores
from bench_lib.score.aggregate import task_scores
from bench_lib.score.instances import instances
from bench_lib.tasks import APM_BENCH, Bench

SILENT, SPEAK, LETTER, LENGTH = "always SILENT", "always INTERVENE", "letter prior", "window length"
TIMES, GLANCE, TREE, LOGISTIC = (
    "times",
    "newest frame's icons",
    "all of it, tree",
    "all of it, logistic",
)
LEARNT: dict[str, tuple[tuple[str, ...], learners.Learner]] = {
    TIMES: (("time",), learners.tree),
    GLANCE: (("glance",), learners.tree),
    TREE: (side_info.GROUPS, learners.tree),
    LOGISTIC: (side_info.GROUPS, learners.logistic),
}
"""What is known without the video (`side_info`): the groups of columns used, and how."""
NAMES = (LETTER, SILENT, SPEAK, LENGTH, *LEARNT)
LONE = "one trajectory: nothing to learn from"


def always(
    trajectories: Sequence[Trajectory], decision: Decision, bench: Bench = APM_BENCH
) -> list[Response]:
    """The same decision at every adaptive probe; ERA's option is the commonest letter elsewhere."""
    letters = _letters(trajectories, bench)
    return [
        _response(trajectory, candidate, probe, bench, decision, letters(trajectory, candidate))
        for trajectory, candidate, probe in _instances(trajectories)
        if bench.task(candidate.task).adaptive
    ]


def letter_prior(trajectories: Sequence[Trajectory], bench: Bench = APM_BENCH) -> list[Response]:
    """The letter that is right most often in the other trajectories, for each number of options."""
    letters = _letters(trajectories, bench)
    return [
        _response(trajectory, candidate, probe, bench, None, letters(trajectory, candidate))
        for trajectory, candidate, probe in _instances(trajectories)
        if bench.task(candidate.task).reply == "choice"
    ]


def window_length(trajectories: Sequence[Trajectory], bench: Bench = APM_BENCH) -> list[Response]:
    """INTERVENE when the announced interval is short (or long) by a limit learnt elsewhere."""
    lengths = window_lengths(trajectories)
    rules = {
        (code, trajectory.id): _rule(group[group["trajectory"] != trajectory.id])
        for code, group in lengths.groupby("task")
        for trajectory in trajectories
    }
    out = []
    for trajectory, candidate, probe in _instances(trajectories):
        if not bench.task(candidate.task).interval or probe.interval is None:
            continue
        rule = rules.get((candidate.task, trajectory.id))
        decision: Decision | None = None
        if rule is not None:
            short = probe.interval[1] - probe.interval[0] <= rule[0]
            decision = "INTERVENE" if short == rule[1] else "SILENT"
        out.append(_response(trajectory, candidate, probe, bench, decision, None))
    return out


def learnt(
    trajectories: Sequence[Trajectory], bench: Bench = APM_BENCH
) -> dict[str, list[Response]]:
    """Replies of the learners by name; those that compare no options answer decisions only.

    A learner of which the source knows nothing has none.
    """
    letters = _letters(trajectories, bench)
    decisions = side_info.decisions(trajectories, bench)
    choices = side_info.choices(trajectories, bench)
    made: dict[str, list[Response]] = {}
    for name, (groups, learner) in LEARNT.items():
        tables = (decisions, choices) if "option" in groups else (decisions,)
        if not any(learners.columns(table, groups) for table in tables):
            continue
        speak = _by_key(decisions, learners.guesses(decisions, groups, learner))
        chosen: dict[Key, str] = {}
        if "option" in groups:
            chosen = _best(choices, learners.guesses(choices, groups, learner))
        for trajectory, candidate, probe in _instances(trajectories):
            key, adaptive = (
                (trajectory.id, candidate.id, probe.id),
                bench.task(candidate.task).adaptive,
            )
            decision: Decision | None = None
            if adaptive and key in speak:
                decision = "INTERVENE" if speak[key] > 0.5 else "SILENT"
            option = chosen.get(key) or (letters(trajectory, candidate) if adaptive else None)
            if (adaptive and probe.polarity) or ("option" in groups and candidate.options):
                reply = _response(trajectory, candidate, probe, bench, decision, option)
                made.setdefault(name, []).append(reply)
    return made


def _by_key(table: pd.DataFrame, chance: pd.Series) -> dict[Key, float]:
    """The chance at each probe, where there is one."""
    keys = zip(table["trajectory"], table["candidate"], table["probe"], strict=True)
    return {key: p for key, p in zip(keys, chance, strict=True) if not np.isnan(p)}


def _best(table: pd.DataFrame, chance: pd.Series) -> dict[Key, str]:
    """The likeliest option of each probe, the first of equals."""
    known = table.assign(chance=chance).dropna(subset=["chance"])
    best = known.sort_values("chance", ascending=False, kind="stable")
    best = best.drop_duplicates(["trajectory", "candidate", "probe"])
    keys = zip(best["trajectory"], best["candidate"], best["probe"], strict=True)
    return dict(zip(keys, best["option"], strict=True))


def window_lengths(trajectories: Iterable[Trajectory]) -> pd.DataFrame:
    """Length in seconds of every announced interval with its polarity."""
    rows = [
        (t.id, c.task, c.id, p.id, p.polarity, p.interval[1] - p.interval[0])
        for t, c, p in _instances(trajectories)
        if p.interval is not None and p.polarity is not None
    ]
    columns = ["trajectory", "task", "candidate", "probe", "polarity", "length_s"]
    return pd.DataFrame(rows, columns=columns)


def length_leak(trajectories: Iterable[Trajectory]) -> pd.DataFrame:
    """Median interval of both polarities by task, and how well length alone tells them apart.

    `separation` is the probability that a positive window is shorter than a negative one (ties
    count half): 0.5 leaks nothing, 0 and 1 everything.
    """
    lengths, rows = window_lengths(trajectories), []
    for task, group in lengths.groupby("task", sort=False):
        values = {
            p: group.loc[group["polarity"] == p, "length_s"].to_numpy()
            for p in ("positive", "negative")
        }
        row: dict[str, object] = {"task": task}
        for polarity, found in values.items():
            row[f"{polarity}_n"] = len(found)
            row[f"{polarity}_median_s"] = float(np.median(found)) if len(found) else np.nan
        gaps = values["negative"][None, :] - values["positive"][:, None]
        row["separation"] = float(((gaps > 0) + 0.5 * (gaps == 0)).mean()) if gaps.size else np.nan
        rows.append(row)
    columns = ["task", "positive_n", "positive_median_s", "negative_n", "negative_median_s",
               "separation"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def shortcut_scores(
    trajectories: Sequence[Trajectory],
    bench: Bench = APM_BENCH,
    only: Collection[Key] | None = None,
) -> pd.DataFrame:
    """Score tables of all shortcuts with a column `shortcut`, only the tasks each one answers.

    `only` keeps the score to some instances; what a shortcut learns comes from all of them.
    """
    made: dict[str, list[Response]] = {
        LETTER: letter_prior(trajectories, bench),
        SILENT: always(trajectories, "SILENT", bench),
        SPEAK: always(trajectories, "INTERVENE", bench),
        LENGTH: window_length(trajectories, bench),
        **learnt(trajectories, bench),
    }
    parts = []
    for name, responses in made.items():
        asked = {r.key for r in responses}
        asked = asked if only is None else asked & set(only)
        data = instances(trajectories, responses, bench=bench, asked=asked)
        found = pd.concat([task_scores(data), decision_scores(data)])
        parts.append(found[found["expected"] > 0].assign(shortcut=name))
    return pd.concat(parts, ignore_index=True)


def _instances(
    trajectories: Iterable[Trajectory],
) -> Iterator[tuple[Trajectory, Candidate, Probe]]:
    for trajectory in trajectories:
        for candidate in trajectory.candidates:
            for probe in candidate.probes:
                yield trajectory, candidate, probe


def _letters(
    trajectories: Sequence[Trajectory], bench: Bench
) -> Callable[[Trajectory, Candidate], str | None]:
    """The commonest key among candidates of other trajectories with as many options."""
    everywhere: dict[int, Counter[str]] = {}
    own: dict[tuple[str, int], Counter[str]] = {}
    for trajectory in trajectories:
        for candidate in trajectory.candidates:
            if candidate.answer is None or not candidate.options:
                continue
            size = len(candidate.options)
            everywhere.setdefault(size, Counter())[candidate.answer] += 1
            own.setdefault((trajectory.id, size), Counter())[candidate.answer] += 1

    def commonest(trajectory: Trajectory, candidate: Candidate) -> str | None:
        size = len(candidate.options)
        rest = everywhere.get(size, Counter()) - own.get((trajectory.id, size), Counter())
        return min(rest, key=lambda letter: (-rest[letter], letter)) if rest else None

    return commonest


def _rule(lengths: pd.DataFrame) -> tuple[float, bool] | None:
    """The limit, and whether short means INTERVENE, of best balanced accuracy, if any."""
    positive = np.sort(lengths.loc[lengths["polarity"] == "positive", "length_s"].to_numpy())
    negative = np.sort(lengths.loc[lengths["polarity"] == "negative", "length_s"].to_numpy())
    if not len(positive) or not len(negative):
        return None
    limits = np.unique(np.concatenate([positive, negative]))
    hit = np.searchsorted(positive, limits, side="right") / len(positive)
    false = np.searchsorted(negative, limits, side="right") / len(negative)
    gain = hit - false
    best = int(np.argmax(np.abs(gain)))
    return float(limits[best]), bool(gain[best] >= 0)


def _response(
    trajectory: Trajectory,
    candidate: Candidate,
    probe: Probe,
    bench: Bench,
    decision: Decision | None,
    option: str | None,
) -> Response:
    task = bench.task(candidate.task)
    known = option is not None if task.reply == "choice" else decision is not None
    response = Response(
        trajectory=trajectory.id,
        session=probe.session,
        candidate=candidate.id,
        probe=probe.id,
        task=candidate.task,
        polarity=probe.polarity,
        cutoff_s=probe.t_s,
        closed=probe.closed,
        status="ok" if known else "not_run",
        option=option if known and decision != "SILENT" else None,
        decision=decision,
        error="" if known else LONE,
    )
    passed = gate(task, probe.polarity, response, candidate.answer)
    return response.model_copy(update={"passed": passed})
