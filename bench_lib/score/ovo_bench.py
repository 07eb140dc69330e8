"""OVO-Bench's own scoring rule, so that shipped answers can be scored again to the same numbers.

Multiple choice: right when the key's letter occurs in the reply. REC: all digits of the reply,
joined, equal the count. SSR and CRR: `Yes` or `No` occurs in the reply, or it is exactly `Y` or
`N`. No reply counts as wrong. A task's accuracy is over all its probes, a group's score the mean of
its tasks, the total the mean of the three groups. The rule credits a reply that names every option;
`parsed` reads the same replies with this package's parser and shows what that changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from bench_lib.errors import BenchError
from bench_lib.paths import short
from bench_lib.replies.parse import parse_choice
from bench_lib.replies.refusals import declines
from bench_lib.score.cells import Cells, grouped, macro, scaled
from bench_lib.score.stats import estimate
from bench_lib.score.table import line, table
from bench_lib.texts import records

GROUPS = {
    "Backward": ("EPM", "ASI", "HLD"),
    "Real-time": ("STU", "OJR", "ATR", "ACR", "OCR", "FPD"),
    "Forward": ("REC", "SSR", "CRR"),
}
TASKS = [task for tasks in GROUPS.values() for task in tasks]
TOTAL = "Total"
LETTERS = "ABCDE"
"""Of a record that does not say what it offers; three questions have five options."""
Rule = Literal["official", "parsed"]


def read_results(folder: Path | str) -> list[dict[str, Any]]:
    """Answers in the benchmark's result files: lists under `backward`, `realtime`, `forward`.

    Raises:
        BenchError: no such file in the folder, or one that is not of that form.
    """
    folder = Path(folder).expanduser()
    found: list[dict[str, Any]] = []
    paths = sorted(path for path in folder.glob("*.json") if path.name[0] != ".")
    if not paths:
        raise BenchError(f"{short(folder)} holds no result file of OVO-Bench (*.json)")
    for path in paths:
        try:
            parts = json.loads(records.text(path))
        except ValueError as error:
            raise BenchError(f"{short(path)} is not JSON: {error}") from None
        if not isinstance(parts, dict) or not set(parts) <= {"backward", "realtime", "forward"}:
            raise BenchError(f"{short(path)} is no result file of OVO-Bench")
        found += [record for part in parts.values() for record in part]
    return found


def probes(records: Iterable[Mapping[str, Any]], rule: Rule = "official") -> pd.DataFrame:
    """One row per probe: task, video, answered, refused, correct (0 or 1; a refusal is never)."""
    rows = []
    for record in records:
        task, video = record["task"], record["video"]
        for probe in record.get("test_info", [record]):
            reply = _text(probe.get("response"))
            refused = reply is not None and declines(reply)
            right = reply is not None and _correct(task, reply, {**record, **probe}, rule)
            rows.append((task, video, reply is not None, refused, float(right and not refused)))
    return pd.DataFrame(rows, columns=["task", "video", "answered", "refused", "correct"])


def _text(reply: Any) -> str | None:
    """A reply as text; one that was stored as a list of texts is joined."""
    if isinstance(reply, list):
        return " ".join(map(str, reply))
    return None if reply is None else str(reply)


def _correct(task: str, reply: str, record: Mapping[str, Any], rule: Rule) -> bool:
    if task == "REC":
        return "".join(re.findall(r"\d+", reply)) == str(record["count"])
    if task in ("SSR", "CRR"):
        word = "Yes" if record["type"] else "No"
        return reply == word[0] or word in reply
    if rule == "official":
        return record["ground_truth"] in reply
    options = dict(zip(LETTERS, record.get("options") or (), strict=False))
    letters = "".join(options) or LETTERS
    return parse_choice(reply, letters, options=options).option == record["ground_truth"]


def ovo_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Tasks, groups and total, clustered by video; a task without probes leaves its group empty."""
    frame = frame.assign(trajectory=frame["video"])
    cells = Cells.of(frame, "correct", "task", names=TASKS)
    counts = frame["task"].value_counts()
    percent, lines = scaled(macro, 100), []
    for task in TASKS:
        found = estimate(cells.only(task), percent)
        n, share = int(counts.get(task, 0)), _refused(frame, [task])
        lines.append(line(task, "accuracy", found, n, "mean over probes", refused_pct=share))
    for name, tasks in GROUPS.items():
        n = int(sum(counts.get(task, 0) for task in tasks))
        found = estimate(cells.only(*tasks), percent)
        share = _refused(frame, tasks)
        lines.append(line(name, "accuracy", found, n, "mean over tasks", refused_pct=share))
    places = [[TASKS.index(task) for task in tasks] for tasks in GROUPS.values()]
    found = estimate(cells, scaled(grouped(places), 100))
    share = _refused(frame, TASKS)
    lines.append(line(TOTAL, "accuracy", found, len(frame), "mean over groups", refused_pct=share))
    return table(lines)


def _refused(frame: pd.DataFrame, tasks: Sequence[str]) -> float:
    """Percent of the probes of these tasks that were refused."""
    own = frame.loc[frame["task"].isin(tasks), "refused"]
    return 100 * float(own.mean()) if len(own) else float("nan")
