"""Asks put a second time: past the cache, in no score, and seen where replies differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench_lib.errors import BenchError
from bench_lib.evaluate import reading
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.readings.repeats import repeats
from bench_lib.report import moment_tables

sys.path.append(str(Path(__file__).parent / "chat"))
REPLIES = ("A", "B", "C", "D")


def run(server, repeat: int, revision: str) -> Evaluation:
    job = Evaluation.open(
        EvalParams(
            method="simplestream", source="dollhouse-small", tasks=["ACR", "CT", "OCR", "STU"],
            backbone=f"endpoint:{server.model}@{server.url}", repeat=repeat,
            backbone_args={"revision": revision, "backoff_s": 0.001},
        )
    )  # fmt: skip
    job.execute(progress=False)
    return job


@pytest.mark.parametrize("wavers", [False, True])
def test_a_server_that_wavers_is_measured(outputs: Path, tmp_path: Path, wavers: bool) -> None:
    from scripted_server import Server

    revision = str(tmp_path)  # kept replies of other tests are of another model

    def reply(exchange):
        asked = [e.text for e in server.requests[: exchange.number]].count(exchange.text)
        letter = REPLIES[(sum(map(ord, exchange.text)) + (asked if wavers else 0)) % 4]
        exchange.reply(json.dumps({"answer": letter}))

    with Server(reply) as server:
        first = run(server, 0, revision)
        asks = len(server.requests)
        assert asks == 8
        scores = reading.gather(first).found.metrics()
        assert moment_tables.again(reading.gather(first)).absent
        job = run(server, 5, revision)
        assert len(server.requests) == asks + 5, "past the kept replies, and only so many"
        run(server, 5, revision)
        assert len(server.requests) == asks + 5, "what was put again stays"
        run(server, 6, revision)
        assert len(server.requests) == asks + 6
    texts, answers = repeats(job.run)
    assert texts.n == answers.n == 6
    assert texts.equal == answers.equal == (0 if wavers else 6)
    assert reading.gather(job).found.metrics() == scores
    table = moment_tables.again(reading.gather(job))
    assert [row.cells[1].text for row in table.rows] == [str(texts.equal)] * 2


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(BenchError, match="repeat"):
        EvalParams(repeat=-1)
