"""What a worker may do wrongly: it costs one request, in time, and never a wrong answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from engine_runs import SETTING, asks_of
from scripted import ask, clip
from synthetic import household

from bench_lib.engine.conditions import episodes
from bench_lib.engine.kept import States
from bench_lib.engine.walk import Walk
from bench_lib.errors import BenchError
from bench_lib.exchange import Note, Refused
from bench_lib.measure import counting
from bench_lib.schema import Response
from bench_lib.tasks import APM_BENCH
from bench_lib.worker.pipe import REPLY_BYTES
from bench_lib.worker.values import ALERTS, CHARACTERS, NAMES

LIMIT_S = 0.6


def line(value: Any) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n"


def ends(code: int, said: bytes = b"") -> Any:
    def doing(program, request, reply):
        program.output.write(said)
        program.exit(code)

    return doing


def writes(said: bytes | str) -> Any:
    return lambda program, request, reply: said if isinstance(said, bytes) else line(said)


def changed(**how: Any) -> Any:
    return lambda program, request, reply: {**reply, **how}


def shuts(program, request, reply):
    program.output.close()
    return b""


def without_end(program, request, reply):
    while True:
        program.output.write(b"x" * 2**16)


def twice(program, request, reply):
    return line(reply) * 2


def one_before(program, request, reply):
    return {**reply, "id": request["id"] - 1}


def alert(**how: Any) -> Any:
    return changed(
        alerts=[{"key": "w", "text": "now", "observed_s": 5.0, "delivered_s": 5.0, **how}]
    )


def with_text(*parts: str) -> Any:
    """The honest reply with something raw in it."""

    def doing(program, request, reply):
        return line(f'{{"id": {request["id"]}, {", ".join(parts)}}}')

    return doing


WRONG = {
    # Not a reply
    "it ends": ("respond", ends(3), r"ended \(exit code 3\)"),
    "it ends inside a reply": ("respond", ends(3, b'{"id": '), r"ended \(exit code 3\)"),
    "it shuts its output": ("respond", shuts, "shut its output"),
    "it is silent": ("respond", writes(b""), "no reply to respond within 0.6 s"),
    "it stops inside a reply": ("respond", writes(b'{"id": 7'), "no reply to respond within"),
    "it shows its progress": ("respond", writes("Loading 100 %"), "is no reply .*'Loading 100 %'"),
    "an empty line": ("respond", writes(b"\n"), "is no reply"),
    "bytes that are no UTF-8": ("respond", writes(b'{"id": "\xff"}\n'), "is no reply"),
    "a list": ("respond", writes("[1, 2]"), "it is no object"),
    "null": ("respond", writes("null"), "it is no object"),
    "nesting without end": ("respond", writes("[" * 100_000), "nested too deeply"),
    "a line without end": ("respond", without_end, f"more than {REPLY_BYTES // 2**20} MiB"),
    "lines without end": (
        "respond",
        writes(line("") * 1000 + b"{}" * (REPLY_BYTES // 2)),
        "is no reply",
    ),
    "no id": ("respond", writes('{"text": "A"}'), "its id is None"),
    "an id of text": ("respond", changed(id="7"), "its id is '7'"),
    "an id of true": ("respond", changed(id=True), "its id is True"),
    "an id with a point": ("respond", changed(id=7.0), "its id is 7.0"),
    "an id to come": ("respond", changed(id=1000), "its id is 1000"),
    "an id of before": ("respond", one_before, "no reply to respond within"),
    "a key twice": ("respond", with_text('"text": "A"', '"text": "B"'), "stands in it twice"),
    "not a number": ("respond", with_text('"text": "A"', '"ttft_s": NaN'), "is no reply"),
    "endless": ("respond", with_text('"text": "A"', '"ttft_s": 1e999'), "is no reply"),
    "a number of 5,000 digits": (
        "respond",
        with_text('"text": "A"', '"ttft_s": ' + "9" * 5000),
        "is no reply",
    ),
    "half a character": ("respond", with_text('"text": "\\ud800"'), "is no reply"),
    "half a character in an alert": ("observe", alert(text="\ud800"), "is no reply"),
    "it is silent at a clip": ("observe", writes(b""), "no reply to observe"),
    "it ends at a clip": ("observe", ends(1), "ended .* at observe"),
    "it ends at a branch": ("branch", ends(1), "ended .* at branch"),
    # Errors of its own
    "it failed at a clip": ("observe", changed(error="no room"), "failed at observe: no room"),
    "it declines a clip": ("observe", changed(error="no", kind="refused"), "no"),
    "it failed": ("respond", changed(error="no room"), "failed at respond: no room"),
    "it failed and answers": ("respond", changed(error="no room", text="A"), "no room"),
    "an error of another kind": ("respond", changed(error="why", kind="odd"), "respond: why"),
    "an error that is no text": ("respond", changed(error=5), "needs 'error', a text, not 5"),
    "an error that is null": ("respond", changed(error=None), "needs 'error', a text"),
    "an endless error": ("respond", changed(error="x" * 10**6), "failed at respond: x{2000}$"),
    # Answers
    "no text": ("respond", writes(b""), "no reply"),
    "a text of null": ("respond", changed(text=None), "needs 'text', a text, not None"),
    "a text of numbers": ("respond", changed(text=3), "needs 'text', a text, not 3"),
    "a list of texts": ("respond", changed(text=["A"]), "needs 'text', a text"),
    "a text too long": ("respond", changed(text="x" * (CHARACTERS + 1)), "1,000,001 characters"),
    "a stop that is not known": ("respond", changed(stop="error"), "stop must be one of"),
    "a stop that refuses": ("respond", changed(stop="refused"), "stop must be one of"),
    "a stop that is no text": ("respond", changed(stop=["end"]), "stop must be one of"),
    "a first token before the request": ("respond", changed(ttft_s=-1), "ttft_s must be"),
    "a first token after the reply": ("respond", changed(ttft_s=99.0), "ttft_s must be"),
    "a first token in words": ("respond", changed(ttft_s="0.1"), "ttft_s must be"),
    "a first token of true": ("respond", changed(ttft_s=True), "ttft_s must be"),
    # Work and memory
    "counters in a list": ("respond", changed(counters=[1]), "counters must be an object"),
    "a negative counter": ("observe", changed(counters={"f": -1}), "counter 'f' must be a whole"),
    "a broken counter": ("observe", changed(counters={"f": 1.5}), "counter 'f' must be a whole"),
    "a counter of true": ("observe", changed(counters={"f": True}), "counter 'f' must be a whole"),
    "a counter beyond all": ("observe", changed(counters={"f": 2**60}), "counter 'f' must be"),
    "too many counters": (
        "respond",
        changed(counters={str(i): 1 for i in range(NAMES + 1)}),
        "more than 100 names",
    ),
    "a counter with an endless name": ("respond", changed(counters={"f" * 999: 1}), "100 names"),
    "bytes of no kind": ("state_bytes", changed(bytes={"soul": 1}), "by kind"),
    "no bytes": ("state_bytes", changed(bytes=None), "by kind"),
    "bytes in words": ("state_bytes", changed(bytes={"kv": "12"}), "bytes of 'kv' must be"),
    "negative bytes": ("state_bytes", changed(bytes={"kv": -1}), "bytes of 'kv' must be"),
    # Alerts: the clip of 4 and 5 s follows one that ended at 3 s
    "alerts in no list": ("observe", changed(alerts={"key": "w"}), "alerts must be a list"),
    "an alert that is a text": ("observe", changed(alerts=["now"]), "alert must be {key, text"),
    "an alert without a stamp": ("observe", changed(alerts=[{"key": "w"}]), "alert must be"),
    "a key that is a number": ("observe", alert(key=1), "alert needs 'key', a text"),
    "an alert without words": ("observe", alert(text=None), "alert needs 'text', a text"),
    "an alert of the past": ("observe", alert(observed_s=1.0), "observed_s .* is 1 s, outside"),
    "an alert of the clip before": ("observe", alert(observed_s=3.0), "outside .*3 s to 5 s"),
    "an alert of the future": (
        "observe",
        alert(observed_s=6.0, delivered_s=6.0),
        "observed_s .* is 6 s, outside",
    ),
    "a negative stamp": ("observe", alert(observed_s=-1.0), "is -1 s, outside"),
    "words before the picture": (
        "observe",
        alert(delivered_s=4.5),
        "delivered at 4.5 s, before what it tells",
    ),
    "words that will be out": ("observe", alert(delivered_s=90.0), "delivered_s .* is 90 s, out"),
    "a stamp in words": ("observe", alert(observed_s="5"), "observed_s .* must be a number"),
    "a stamp of true": ("observe", alert(observed_s=True), "observed_s .* must be a number"),
    "too many alerts": (
        "observe",
        lambda p, q, reply: {**reply, "alerts": [{}] * (ALERTS + 1)},
        "more than 10,000 alerts",
    ),
    # Watches
    "no word to a watch": ("watch", changed(text=None), "reply to watch needs 'text'"),
    "it failed at a watch": ("watch", changed(error="no"), "failed at watch"),
    "it declines a watch": ("watch", changed(error="too many", kind="refused"), "too many"),
}


def test_enough_of_them() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("name", WRONG)
def test_it_costs_its_request_and_the_memory_stays_whole(scripted, name: str) -> None:
    """Whatever was wrong: in time, named, and the next answer is that of an honest worker."""
    op, doing, said = WRONG[name]
    honest = scripted()
    for start in (0, 2, 4):
        honest.observe(clip(start))
    which = 3 if op == "observe" else 1
    limit_s = LIMIT_S if "no reply" in said else 60.0
    method = scripted({(op, which): doing}, timeout_s=limit_s)
    for start in (0, 2):
        method.observe(clip(start))
    begun = time.monotonic()

    def go_on() -> None:
        method.observe(clip(4))
        if op == "watch":
            method.watch(Note(0, 5.0, "Tell me."), "w")
        method.state_bytes()
        ask(method)

    with pytest.raises((BenchError, Refused), match=f"(?s:{said})"):
        go_on()
    assert time.monotonic() - begun < 5.0
    assert method.alerts(99.0) == ()
    assert ask(method) == ask(honest)


@pytest.mark.parametrize(
    "doing",
    [
        twice,
        lambda program, request, reply: line({"id": 1, "text": "old"}) * 50 + line(reply),
        lambda program, request, reply: {**reply, "alerts": None, "counters": None, "more": 1},
        lambda program, request, reply: (
            line({"id": reply["id"], "text": reply["text"]})[:-1] + b"\r\n"
        ),
    ],
)
def test_what_does_no_harm_is_passed_over(scripted, doing) -> None:
    """A reply given twice, or one to an earlier request, is never taken for the next one's."""
    method, honest = scripted({("respond", 0): doing}), scripted()
    for each in (method, honest):
        each.observe(clip(0))
    with counting() as counts:
        assert {ask(method) for _ in range(3)} == {ask(honest)}
    assert counts["model_calls"] == 4
    assert method.trunk.started == 1


@pytest.mark.parametrize("doing", [changed(error="busy"), ends(1), writes(b"")])
def test_a_branch_that_cannot_be_dropped_is_no_matter_of_the_next_question(scripted, doing) -> None:
    method = scripted({("drop", 1): doing}, timeout_s=LIMIT_S)
    method.observe(clip(0))
    assert len({ask(method) for _ in range(3)}) == 1


@pytest.mark.parametrize("doing", [changed(error="no room"), ends(1), writes(b"")])
def test_half_a_memory_never_answers(scripted, doing) -> None:
    """A process that ends, and another one that fails at the third of four clips."""
    honest = scripted()
    method = scripted({("respond", 1): ends(3), ("observe", 7): doing}, timeout_s=LIMIT_S)
    for each in (method, honest):
        for start in (0, 2, 4, 6):
            each.observe(clip(start))
    with pytest.raises(BenchError, match="exit code 3"):
        ask(method)
    with pytest.raises(BenchError, match=r"told again what came before: .* observe"):
        ask(method)
    assert ask(method) == ask(honest)
    assert ask(honest).startswith("8 frames")


def test_a_worker_that_cannot_be_started_again_is_given_up(scripted) -> None:
    """Every question ends in an error, and soon."""
    method = scripted({("respond", 1): ends(3), ("observe", 2): ends(4), ("observe", 3): ends(4)})
    method.observe(clip(0))
    for said in ("exit code 3", "exit code 4", "exit code 4"):
        with pytest.raises(BenchError, match=said):
            ask(method)
    assert ask(method).startswith("2 frames")  # the third start went well
    hopeless = scripted({("respond", 1): ends(3), **{("observe", n): ends(4) for n in range(2, 9)}})
    hopeless.observe(clip(0))
    for _ in range(4):
        with pytest.raises(BenchError, match="exit code"):
            ask(hopeless)
    with pytest.raises(BenchError, match="given up: 3 starts in a row failed"):
        ask(hopeless)


@pytest.mark.parametrize(
    ("doing", "said"),
    [
        (changed(protocol=2), "speaks protocol 2, not 1"),
        (changed(protocol=True), "speaks protocol True"),
        (changed(name=7), "needs 'name', a text"),
        (changed(name="x" * 201), "201 characters of 'name'"),
        (changed(can=None), "can must be an object"),
        (changed(can={"causal": 1}), "can.causal is 1"),
        (changed(provenance=["weights"]), "provenance must be an object"),
        (changed(provenance={"w": "x" * 2**17}), "provenance must be an object of at most"),
        (ends(2), "exit code 2"),
    ],
)
def test_an_introduction_is_read_value_by_value(scripted, doing, said: str) -> None:
    with pytest.raises(BenchError, match=said):
        scripted({("hello", 0): doing})


def test_a_worker_that_has_become_another_one_is_refused(scripted) -> None:
    """Its weights are exchanged while the run goes on."""
    method = scripted(
        {("hello", 3): changed(provenance={"weights": "others"}), ("respond", 1): ends(3)}
    )
    method.observe(clip(0))
    with pytest.raises(BenchError, match="exit code 3"):
        ask(method)
    with pytest.raises(BenchError, match=r"introduced itself as .*others.* must be the same"):
        ask(method)


def test_a_declined_watch_is_not_told_again(scripted) -> None:
    declined = changed(error="too many", kind="refused")
    method = scripted({("watch", 1): declined, ("respond", 1): ends(3)})
    method.observe(clip(0))
    with pytest.raises(Refused):
        method.watch(Note(0, 1.0, "Tell me."), "w")
    with pytest.raises(BenchError, match="exit code 3"):
        ask(method)
    assert ask(method)
    assert [op for op, _ in method.trunk.journal] == ["reset", "begin_session", "observe"]


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize(
    "doing",
    [
        ends(3),
        writes("Loading 100 %"),
        changed(text=None),
        changed(stop="error"),
        twice,
    ],
)
def test_a_walk_has_one_record_for_each_ask_and_no_wrong_one(
    scripted, tmp_path: Path, doing, at: int
) -> None:
    """What went wrong is an error of its ask; all others are answered as by an honest worker."""
    home = household(tmp_path, sessions=2, seconds=4.0)

    def walked(method) -> list[Response]:
        records: list[tuple[str, Any]] = []
        for episode in episodes(APM_BENCH, home, asks_of(home)):
            keep = States(tmp_path / "states", "none")
            Walk(method, episode, SETTING, keep, lambda *what: records.append(what)).run()
        return [record for kind, record in records if kind == "responses"]

    honest = {r.key: r.raw_text for r in walked(scripted(begin=False))}
    found = walked(scripted({("respond", at): doing}, begin=False, timeout_s=60.0))
    assert sorted(r.key for r in found) == sorted(honest) == sorted(a.key for a in asks_of(home))
    failed = [r for r in found if r.status == "error"]
    lost = [r for r in failed if "ended while this question was open" in r.error]
    assert len(failed) - len(lost) == (doing is not twice)
    assert all(r.raw_text == honest[r.key] for r in found if r.status != "error")
    assert all(r.error and not r.raw_text and r.passed is None for r in failed)
