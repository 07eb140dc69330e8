r"""Records in files of users: a JSON value, or JSON lines.

UTF-8 or UTF-16, with or without a byte-order mark. Lines end at `\n` or `\r\n` and nowhere else;
every other separator that Unicode has is text. A file of lines may be one JSON list instead. What
cannot be read for certain (another encoding, a key given twice, NaN, half a character) is named
with its line and never guessed, and the other records are read.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_lib.texts import Unreadable

__all__ = ["Entry", "Unreadable", "entries", "text", "value"]

BLANK = " \t\r\ufeff"
"""What may surround a record; a mark stands inside a file where files were joined."""
DEEP = "is nested too deeply"
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Entry:
    """A record and its place (`line 3`, `item 2`), or the `fault` that keeps it from being read.

    `field` is where in it the fault lies, `JSON` where that cannot be told.
    """

    where: str
    text: str
    value: Any = None
    fault: str = ""
    field: str = "JSON"


@dataclass(frozen=True)
class _Bad:
    reason: str


def text(path: Path) -> str:
    """The whole text of a file. Raises Unreadable."""
    whole, encoding = _decoded(path)
    for number, line in enumerate(whole.split("\n"), 1):
        if fault := _half(line, encoding):
            raise Unreadable(f"line {number} {fault}")
    return whole


def value(path: Path) -> Any:
    """The JSON value that a file is. Raises Unreadable."""
    whole = _checked("", "", _value(text(path)))
    if whole.fault:
        raise Unreadable(f"{whole.field}: {whole.fault}")
    return whole.value


def entries(path: Path) -> list[Entry]:
    """The records of a file of JSON lines, or of one JSON list, in order. Raises Unreadable."""
    whole, encoding = _decoded(path)
    if whole.lstrip(BLANK + "\n").startswith("["):
        listed = enumerate(_value(text(path)), 1)
        return [_checked(f"item {n}", str(one), one) for n, one in listed]
    lines = enumerate(whole.split("\n"), 1)
    return [_entry(n, line, encoding) for n, line in lines if line.strip(BLANK)]


def _value(whole: str) -> Any:
    try:
        return _loads(whole)
    except json.JSONDecodeError as error:
        raise Unreadable(f"line {error.lineno} is not JSON: {_said(error)}") from None
    except RecursionError:
        raise Unreadable(DEEP) from None


def _checked(where: str, said: str, found: Any) -> Entry:
    try:
        for field, fault in _faults(found):
            return Entry(where, said, None, fault, field)
    except RecursionError:
        return Entry(where, said, None, DEEP)
    return Entry(where, said, found)


def _entry(number: int, line: str, encoding: str) -> Entry:
    where = f"line {number}"
    if fault := _half(line, encoding):
        return Entry(where, line, None, fault)
    try:
        return _checked(where, line, _loads(line.strip(BLANK)))
    except json.JSONDecodeError as error:
        return Entry(where, line, None, f"is not JSON: {_said(error)}")
    except RecursionError:
        return Entry(where, line, None, DEEP)


def _decoded(path: Path) -> tuple[str, str]:
    """A file's text and its encoding; each byte that does not belong to it is a lone surrogate."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from None
    encoding = json.detect_encoding(data)  # by the mark, else by the zeros of the first characters
    return data.decode(encoding, "bench_lib.bytes").removeprefix("\ufeff"), encoding.upper()


def _bytes(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    bad = error.object[error.start : error.end]
    return "".join(chr(0xDC00 + byte) for byte in bad), error.end


codecs.register_error("bench_lib.bytes", _bytes)


def _half(line: str, encoding: str) -> str:
    bad = _HALF.search(line)
    if bad is None:
        return ""
    byte = ord(bad[0]) & 0xFF
    name = encoding.removesuffix("-SIG").removesuffix("-LE").removesuffix("-BE")
    where = f"has the byte 0x{byte:02X} at column {bad.start() + 1}"
    return f"{where}, which is not {name}; save the file as UTF-8"


def _loads(text: str) -> Any:
    return json.loads(
        text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_number,
        parse_int=_whole,
    )  # fmt: skip


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        return _Bad(f"gives {twice!r} twice")
    return found


def _no_number(name: str) -> _Bad:
    return _Bad(f"holds {name}, which is no number")


def _number(digits: str) -> float | _Bad:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits[:40])


def _whole(digits: str) -> int | _Bad:
    return int(digits) if len(digits) < 300 else _no_number(f"{digits[:40]}...")


def _faults(found: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """What is wrong inside a value that is JSON, with its place."""
    if isinstance(found, _Bad):
        yield at or "JSON", found.reason
    elif isinstance(found, str):
        if _HALF.search(found):
            yield at or "JSON", "holds half a character (a lone surrogate)"
    elif isinstance(found, list):
        for n, one in enumerate(found):
            yield from _faults(one, f"{at}[{n}]")
    elif isinstance(found, dict):
        for key, one in found.items():
            yield from _faults(key, at)
            yield from _faults(one, f"{at}.{key}".lstrip("."))


def _said(error: json.JSONDecodeError) -> str:
    return f"{error.msg} at column {error.colno}"
