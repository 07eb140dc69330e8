"""A key planted wherever a user might put one is found in nothing that a run writes or shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Exchange, Server
from synthetic import movie

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.evaluate.job import Evaluation
from bench_lib.evaluate.reading import gather
from bench_lib.judge.job import Judging
from bench_lib.opening import chat
from bench_lib.params.binding import bind
from bench_lib.params.evaluate import EvalParams
from bench_lib.params.readings import AblationParams, ArenaParams, JudgeParams
from bench_lib.report import header
from bench_lib.report.caveats import caveats
from bench_lib.schema import Candidate, Probe, Reference, Registration

KEY = "Planted/0123+Key"
HOST = "http://127.0.0.1:9/v1"
CHAT = {"method": "raw_video", "backbone": f"endpoint:m@{HOST}"}
SPOKEN = {"decision": "INTERVENE", "response": "Yes."}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One trajectory of one session with a case that a judge is asked about."""
    movie(tmp_path / "data" / "T" / "day1.mp4", 3)
    case = Candidate(
        id="c", task="MPA", registration=Registration(session="day1", t_s=0, text="Help me."),
        probes=(
            Probe(
                id="p", session="day1", t_s=2, closed=False, polarity="positive", interval=(1, 2),
                reference=Reference(response="Yes.", reason="It is time."),
            ),
        ),
    )  # fmt: skip
    (tmp_path / "data" / "T" / "candidates.jsonl").write_text(case.model_dump_json())
    return tmp_path / "data"


@pytest.fixture
def written(outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds all that is written."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "outputs" / "cache"))
    return outputs


def told(folder: Path) -> list[Path]:
    """Files that hold the key."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if KEY in path.read_bytes().decode(errors="replace")]


@pytest.mark.parametrize(
    "given",
    [
        {"backbone": f"endpoint:m@http://me:{KEY}@host/v1"},
        {"backbone": f"endpoint:m@http://{KEY}@host/v1"},
        {"backbone": f"endpoint:m@{HOST},http://me:{KEY}@host/v1"},
        {"backbone": f"endpoint:m@{HOST}?api_key={KEY}"},
        {"backbone_args": {"api_key": KEY}},
        {"backbone_args": {"token": KEY}},
        {"backbone_args": {"key_env": KEY}},
        {"backbone_args": {"headers": {"x-token": KEY}}},
        {"backbone_args": {"headers": {"Authorization": f"Bearer {KEY}"}}},
        {"backbone_args": {"extra": {"api_key": KEY}}},
        {"backbone_args": {"extra": {"deep": [{"cookie": KEY}]}}},
        {"backbone_args": {"embedding_url": f"http://me:{KEY}@host/v1"}},
        {"backbone_args": {"revision": f"http://host/?key={KEY}"}},
        {"method_args": {"token": KEY}},
        {"method_args": {"command": ["python", "worker.py", "--api-key", KEY]}},
        {"method_args": {"settings": {"password": KEY}}},
        {"source": f"stream_arena?asr=endpoint:m@http://me:{KEY}@host/v1"},
    ],
)
def test_a_key_among_the_parameters_of_a_run_is_refused(
    written: Path, root: Path, given: dict[str, Any]
) -> None:
    own = {"source": "folder", "data_root": str(root), **CHAT, **given}
    with pytest.raises(BenchError) as caught:
        Evaluation.open(bind(EvalParams, own)).execute(progress=False)
    assert KEY not in str(caught.value)
    assert not list(written.glob("runs/*")), "a refused run leaves nothing"
    assert not told(written)


@pytest.mark.parametrize(
    ("record", "given"),
    [
        (JudgeParams, {"judge": f"endpoint:m@http://me:{KEY}@host/v1"}),
        (JudgeParams, {"judge_args": {"api_key": KEY}}),
        (JudgeParams, {"judge_args": {"extra": {"x-token": KEY}}}),
        (ArenaParams, {"shared": {"backbone_args": {"api_key": KEY}}}),
        (AblationParams, {"shared": {"backbone_args": {"secret": KEY}}}),
        (AblationParams, {"systems": {"x": {"method": "blind", "method_args": {"auth": KEY}}}}),
        (EvalParams, {"backbone_args": json.dumps({"api_key": KEY})}),
        (EvalParams, {"api_key": KEY}),
        (JudgeParams, {"run": f"http://me:{KEY}@host/"}),
    ],
)
def test_a_key_among_other_parameters_is_refused(record: type, given: dict[str, Any]) -> None:
    with pytest.raises(BenchError) as caught:
        bind(record, given)
    assert KEY not in str(caught.value)


def test_the_key_itself_for_the_name_of_its_variable() -> None:
    for key in (KEY, "abcdef0123456789"):
        with pytest.raises(BenchError, match="it never holds the key itself") as caught:
            chat.open(f"endpoint:m@{HOST}", key_env=key)
        assert key not in str(caught.value)


def echoing(exchange: Exchange) -> None:
    """Gives back the key it was sent, in replies, errors and in what is no JSON."""
    sent = exchange.http.headers["Authorization"].removeprefix("Bearer ")
    match exchange.number % 4:
        case 0:
            exchange.error(400, f"key {sent} may not do this")
        case 1:
            exchange.send(500, f"<p>{sent}</p>", "text/html")
        case _:
            reason = f"the key is {sent}"
            exchange.reply(json.dumps({**SPOKEN, "reason": reason}), reasoning_content=sent)


def test_a_key_of_the_environment_is_sent_and_never_written(
    written: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("MY_SERVER", KEY)
    args = {"key_env": "MY_SERVER", "retries": 1, "backoff_s": 0.001}
    shown = []
    with Server(echoing) as server:
        spec = f"endpoint:toy@{server.url}"
        given = {"source": "folder", "data_root": str(root), "method": "raw_video"}
        for seed in range(6):
            params = EvalParams(**given, backbone=spec, backbone_args=args, seed=seed)
            shown.append(repr(params.changed()))
            job = Evaluation.open(params)
            job.execute(progress=False)
            judging = Judging.open(
                JudgeParams(run=job.run.folder.name, judge=spec, judge_args=args)
            )
            try:
                judging.execute(progress=False)
            except BenchError as error:
                shown.append(str(error))
            material = gather(job)
            shown.append(repr([header.header(material), caveats(material), judging.judge]))
    texts = [path.read_text() for path in written.glob("runs/*/responses.*")]
    statuses = {json.loads(line)["status"] for text in texts for line in text.splitlines()}
    assert statuses == {"repaired", "error"}
    assert any("Authorization" in h for h in server.headers)
    assert not told(written)
    assert KEY not in "".join(shown) + capsys.readouterr().out


def test_a_secret_that_a_method_lets_out_is_not_written(
    written: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", KEY)
    hashing = methods.find("hashing")

    def respond(self: Any, query: Any, generation: Any) -> Any:
        raise RuntimeError(f"GET https://search/?key={KEY} failed")

    monkeypatch.setattr(hashing, "respond", respond)
    job = Evaluation.open(EvalParams(method="hashing", source="folder", data_root=str(root)))
    job.execute(progress=False)
    (response,) = job.responses()
    assert response.status == "error"
    assert "failed" in response.error
    assert not told(written)
