"""Human labels of replies, read so that nothing is guessed: ids stay text, empty stays empty."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench_lib.errors import BenchError
from bench_lib.paths import short

COLUMNS = ("candidate", "probe", "score")


def read_labels(path: Path | str, categories: Sequence[int] = (1, 2, 3, 4, 5)) -> pd.DataFrame:
    """Labels from a CSV or JSON-lines file with candidate, probe, score, and maybe annotator.

    Raises:
        BenchError: names file, row and value of the first bad one.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise BenchError(f"{short(path)} does not exist; give a .csv or .jsonl file of labels")
    rows: list[dict[Any, Any]]
    if path.suffix == ".csv":
        rows = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
    else:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [_line(path, number, text) for number, text in enumerate(lines, 1) if text.strip()]
    out, seen = [], set()
    for number, row in enumerate(rows, 1):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise BenchError(f"{short(path)} record {number} lacks {', '.join(missing)}")
        text = str(row["score"]).strip()
        if text not in {str(c) for c in categories}:
            known = ", ".join(map(str, categories))
            raise BenchError(f"{short(path)} record {number}: score {text!r} is none of {known}")
        key = (str(row["candidate"]), str(row["probe"]), str(row.get("annotator", "")))
        if key in seen:
            raise BenchError(f"{short(path)} record {number}: {key[0]} {key[1]} is labelled twice")
        seen.add(key)
        out.append((*key, int(text)))
    return pd.DataFrame(out, columns=["candidate", "probe", "annotator", "human"])


def _line(path: Path, number: int, text: str) -> dict[Any, Any]:
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise BenchError(f"{short(path)} line {number} is not a JSON object")
    return row
