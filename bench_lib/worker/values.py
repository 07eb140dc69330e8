"""What a worker says, read value by value: a type, a range and a size each, or an error."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.exchange import Alert
from bench_lib.measure import count
from bench_lib.state import walk as states
from bench_lib.video.stream import EPSILON_S

CHARACTERS = 1_000_000
"""Longest text."""
NAME = 200
"""Longest name."""
NAMES = 100
"""Most counters of a reply."""
ALERTS = 10_000
"""Most alerts of a session."""
LARGEST = 2**53
"""Largest number; a float holds it exactly."""
STAMPS = ("observed_s", "delivered_s")
STOPS = ("end", "length")
"""Why a reply ends."""


def decoded(line: bytes) -> dict[str, Any]:
    """One object of JSON, nothing in it but what JSON and UTF-8 can say; ValueError else."""
    try:
        value = json.loads(line.decode(), object_pairs_hook=_once)
        # Half a character, NaN and numbers beyond all bounds are read, but not written.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands in it twice")
    return found


def text_of(said: Mapping[str, Any], where: str, key: str = "text", most: int = CHARACTERS) -> str:
    """A text of what a worker said; BenchError where there is none, or one too long."""
    value = said.get(key)
    if not isinstance(value, str):
        raise BenchError(f"the worker's {where} needs {key!r}, a text, not {shown(value)}")
    if len(value) > most:
        raise BenchError(
            f"the worker's {where} has {len(value):,} characters of {key!r}, over {most:,}"
        )
    return value


def stop_of(reply: Mapping[str, Any]) -> str:
    """Why an answer ends; BenchError for a reason that is not known."""
    value = _given(reply, "stop", "end")
    if value not in STOPS:
        raise BenchError(f"the worker's stop must be one of {STOPS}, not {shown(value)}")
    return str(value)


def ttft_of(reply: Mapping[str, Any], took_s: float) -> float:
    """Seconds to the first token: all that the reply took, where the worker does not say less."""
    value = _given(reply, "ttft_s", took_s)
    if not _number(value) or not 0.0 <= value <= took_s:
        raise BenchError(
            f"the worker's ttft_s must be a number from 0 to the {took_s:g} s that its reply took, "
            f"not {shown(value)}"
        )
    return float(value)


def alerts_of(
    reply: Mapping[str, Any], since_s: float | None, now_s: float, room: int = ALERTS
) -> tuple[Alert, ...]:
    """What a worker says of its own accord in its reply to a clip.

    Both stamps lie after the end of the clip before, `since_s` (None for a session's first), and
    not after the end of this one, `now_s`. `room` is left for alerts in this session.

    Raises:
        BenchError: an alert is wrong, and how; none of them is believed then.
    """
    said = _given(reply, "alerts", [])
    if not isinstance(said, list):
        raise BenchError(f"a worker's alerts must be a list, not {shown(said)}")
    if len(said) > room:
        raise BenchError(f"a worker gave more than {ALERTS:,} alerts in one session")
    return tuple(_alert(one, since_s, now_s) for one in said)


def _alert(said: Any, since_s: float | None, now_s: float) -> Alert:
    keys = ("key", "text", *STAMPS)
    if not isinstance(said, dict) or not set(keys) <= set(said):
        raise BenchError(f"a worker's alert must be {{{', '.join(keys)}}}, not {shown(said)}")
    key, text = text_of(said, "alert", "key", NAME), text_of(said, "alert")
    for name in STAMPS:
        value = said[name]
        if not _number(value):
            raise BenchError(f"{name} of a worker's alert must be a number, not {shown(value)}")
        early = value < 0.0 if since_s is None else value <= since_s + EPSILON_S
        if early or value > now_s + EPSILON_S:
            raise BenchError(
                f"{name} of a worker's alert is {value:g} s, outside of the stretch that it was "
                f"shown last ({since_s or 0.0:g} s to {now_s:g} s)"
            )
    if said["delivered_s"] < said["observed_s"]:
        raise BenchError(
            f"a worker's alert is delivered at {said['delivered_s']:g} s, before what it tells was "
            f"observed ({said['observed_s']:g} s)"
        )
    return Alert(key, text, float(said["observed_s"]), float(said["delivered_s"]))


def counted(reply: Mapping[str, Any]) -> None:
    """Count the work that a reply tells of; BenchError where it is no number."""
    for name, number in _named(reply, "counters").items():
        count(name, _whole(number, f"counter {name!r}"))


def bytes_of(reply: Mapping[str, Any]) -> dict[str, int]:
    """Bytes by kind; BenchError where a kind is not known, or no number."""
    said = _named(reply, "bytes")
    if reply.get("bytes") is None or not set(said) <= set(states.KINDS):
        kinds = ", ".join(states.KINDS)
        raise BenchError(f"the worker's bytes must be by kind ({kinds}), not {shown(said)}")
    return {kind: _whole(number, f"bytes of {kind!r}") for kind, number in said.items()}


def _given(reply: Mapping[str, Any], key: str, default: Any) -> Any:
    """A value, or its default where it is left out or null."""
    value = reply.get(key)
    return default if value is None else value


def _named(reply: Mapping[str, Any], key: str) -> dict[str, Any]:
    said = _given(reply, key, {})
    if not isinstance(said, dict):
        raise BenchError(f"a worker's {key} must be an object, not {shown(said)}")
    if len(said) > NAMES or any(len(name) > NAME for name in said):
        raise BenchError(f"a worker's {key} has more than {NAMES} names, or one over {NAME} long")
    return said


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _whole(number: Any, name: str) -> int:
    if type(number) is not int or not 0 <= number <= LARGEST:
        raise BenchError(
            f"a worker's {name} must be a whole number from 0 to 2**53, not {shown(number)}"
        )
    return number


def shown(value: Any) -> str:
    """A value in a message, cut short."""
    return _short.repr(value)


_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = NAME
