"""The gate's whole table, one row per case of the protocol."""

from __future__ import annotations

import pytest

from bench_lib.replies.gate import gate
from bench_lib.replies.parse import Parsed, parse
from bench_lib.tasks import APM_BENCH, FREE

SILENT = '{"decision": "SILENT", "reason": "r"}'
SPEAK = '{"decision": "INTERVENE", "proactive_response": "p", "reason": "r"}'
SPEAK_B = '{"decision": "INTERVENE", "answer": "B", "reason": "r"}'
SPEAK_NONE = '{"decision": "INTERVENE", "reason": "r"}'


@pytest.mark.parametrize(
    ("code", "polarity", "reply", "answer", "passed"),
    [
        ("ER", None, '{"answer": "B"}', "B", True),
        ("ER", None, '{"answer": "C"}', "B", False),
        ("ER", None, "no idea", "B", False),
        ("ER", None, '{"answer": "B"}', None, None),
        ("ERA", "positive", SPEAK_B, "B", True),
        ("ERA", "positive", SPEAK_B, "C", False),
        ("ERA", "positive", SPEAK_NONE, "B", False),
        ("ERA", "positive", SILENT, "B", False),
        ("ERA", "negative", SILENT, "B", True),
        ("ERA", "negative", SPEAK_B, "B", False),
        ("ERA", "negative", "no idea", "B", False),
        ("ERA", "positive", SPEAK_B, None, None),
        ("ERA", None, SPEAK_B, "B", None),
        *[
            row
            for code in ("RCR", "MPA", "PRM", "TPG")
            for row in [
                (code, "positive", SPEAK, None, True),
                (code, "positive", SILENT, None, False),
                (code, "positive", "no idea", None, False),
                (code, "negative", SILENT, None, True),
                (code, "negative", SPEAK, None, False),
                (code, "negative", "no idea", None, False),
                (code, None, SILENT, None, None),
            ]
        ],
    ],
)
def test_gate(code, polarity, reply, answer, passed):
    task = APM_BENCH.task(code)
    assert gate(task, polarity, parse(task.reply, reply), answer) is passed


@pytest.mark.parametrize("code", [task.code for task in APM_BENCH.tasks])
def test_what_is_no_reply_is_neither_right_nor_wrong(code):
    class Failed:
        status, option, decision = "error", None, None

    assert gate(APM_BENCH.task(code), "negative", Failed(), "A") is None


@pytest.mark.parametrize("code", [task.code for task in APM_BENCH.tasks])
@pytest.mark.parametrize("polarity", ["positive", "negative"])
def test_a_refusal_passes_nowhere(code, polarity):
    task = APM_BENCH.task(code)
    for parsed in (
        parse(task.reply, "I can't help with that."),
        parse(task.reply, "B", stop="refused"),
    ):
        assert parsed.status == "refused"
        assert gate(task, polarity, parsed, "A") is False


def test_a_free_question_has_no_gate():
    assert gate(FREE, None, Parsed("ok", text="Two cups."), None) is None
