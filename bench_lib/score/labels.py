"""Human labels of replies, read so that nothing is guessed: ids stay text, empty stays empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench_lib.errors import BenchError
from bench_lib.paths import short
from bench_lib.schema import KEY
from bench_lib.texts import composed, records

COLUMNS = ("candidate", "probe", "score")
TABLES = (".csv", ".tsv", ".txt")


def read_labels(path: Path | str, categories: Sequence[int] = (1, 2, 3, 4, 5)) -> pd.DataFrame:
    """Labels from a table or a JSON-lines file with candidate, probe and score.

    It may name the annotator, and the trajectory: empty where a candidate's id says it all. A table
    is `.csv`, `.tsv` or `.txt`; commas, semicolons or tabs part its columns, whichever its first
    line has most of.

    Raises:
        BenchError: names file, row and value of the first bad one.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise BenchError(f"{short(path)} does not exist; give a .csv or .jsonl file of labels")
    out, seen = [], set()
    for where, row in _rows(path):
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            raise BenchError(f"{short(path)} {where} lacks {', '.join(missing)}")
        text = str(row["score"]).strip()
        if text not in {str(c) for c in categories}:
            known = ", ".join(map(str, categories))
            raise BenchError(f"{short(path)} {where}: score {text!r} is none of {known}")
        ids = [row.get(name, "") for name in (*KEY, "annotator")]
        key = tuple(composed(str(one)) for one in ids)
        if key in seen:
            told = " ".join(filter(None, key[:3]))
            raise BenchError(f"{short(path)} {where}: {told} is labelled twice")
        seen.add(key)
        out.append((*key, int(text)))
    return pd.DataFrame(out, columns=[*KEY, "annotator", "human"])


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        if path.suffix.lower() in TABLES:
            yield from _table(path)
            return
        for entry in records.entries(path):
            if entry.fault or not isinstance(entry.value, dict):
                reason = entry.fault or "is not a JSON object"
                raise BenchError(f"{short(path)} {entry.where} {reason}")
            yield entry.where, entry.value
    except records.Unreadable as error:
        raise BenchError(f"{short(path)} {error}") from None


def _table(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = records.text(path)
    first = text.partition("\n")[0]
    parted = csv.reader(io.StringIO(text, ""), delimiter=max(",;\t", key=first.count), strict=True)
    try:
        head = [name.strip() for name in next(parted, [])]
        if len(set(head)) < len(head):
            raise BenchError(f"{short(path)} line 1 names a column twice: {', '.join(head)}")
        for row in parted:
            where = f"line {parted.line_num}"
            if len(row) > len(head):
                told = f"has {len(row)} columns, the first line {len(head)}; quote its texts"
                raise BenchError(f"{short(path)} {where} {told}")
            if any(cell.strip() for cell in row):
                # A shorter row lacks what is not there.
                yield where, dict(zip(head, row, strict=False))
    except csv.Error as error:
        raise BenchError(f"{short(path)} line {parted.line_num}: {error}") from None
