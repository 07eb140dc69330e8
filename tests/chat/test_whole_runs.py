"""03_eval against a server that fails: ends with statuses, resumes, loses and doubles nothing."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_server import Exchange, Server
from test_robustness import HTML, PASSING

from bench_lib.evaluate import page as evaluation_page
from bench_lib.evaluate import page as render
from bench_lib.evaluate import reading
from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Response

QUICK = {"backoff_s": 0.001, "timeout_s": 20.0, "max_wait_s": 0.5, "retries": 3, "concurrency": 4}


def said(exchange: Exchange) -> str:
    """A reply that depends on every word and picture of the request."""
    value = sum(map(ord, json.dumps(exchange.body["messages"])))
    letter = "ABCD"[value % 4]
    decision = ("SILENT", "INTERVENE")[value % 2]
    return json.dumps({"decision": decision, "answer": letter, "reason": str(value)})


class Counting:
    """Answers, and counts which requests were answered; `fault` may do something else instead."""

    def __init__(self, fault: Callable[[Exchange, int], object] = lambda e, n: None) -> None:
        self.fault, self.answered, self.lock, self.seen = fault, Counter(), threading.Lock(), 0

    def __call__(self, exchange: Exchange) -> None:
        with self.lock:
            number, self.seen = self.seen, self.seen + 1
        if self.fault(exchange, number) is None:
            with self.lock:
                self.answered[json.dumps(exchange.body["messages"])] += 1
            exchange.reply(said(exchange))


def evaluated(server: Server, folder: Path, **settings) -> Evaluation:
    """One call of 03_eval; the folder keeps the replies of tests apart."""
    job = Evaluation.open(
        EvalParams(
            method="raw_video", method_args={"max_frames": 8}, source="dollhouse-small", limit=1,
            store="lossless",  # decoded once for all of these runs
            backbone=f"endpoint:toy@{server.url}",
            backbone_args={**QUICK, "revision": str(folder), "video": "jpeg", **settings},
        )
    )  # fmt: skip
    job.execute(progress=False)
    return job


def statuses(job: Evaluation) -> Counter:
    return Counter(r.status for r in job.responses())


def texts(job: Evaluation) -> dict:
    return {r.key: r.raw_text for r in job.responses()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """What a healthy server answers."""
    with pytest.MonkeyPatch.context() as patch, Server(Counting()) as server:
        folder = tmp_path_factory.mktemp("whole")
        patch.setenv("BENCH_OUTPUTS", str(folder))
        job = evaluated(server, folder)
        assert set(statuses(job)) <= {"ok", "repaired"}
        assert len(set(texts(job).values())) > 12, "the replies must tell requests apart"
        return texts(job)


def check_whole(job: Evaluation, whole: dict, handler: Counting) -> None:
    assert texts(job) == whole
    kept = [r for r in job.run.read("responses") if r["status"] not in ("error", "not_run")]
    assert len(kept) == len({Response.model_validate(r).key for r in kept}) == len(whole)
    assert set(handler.answered.values()) == {1}, "an answered request was sent again"
    render.save(reading.gather(job))


@pytest.mark.parametrize("name", [n for n in PASSING if n != "hangs up"])
def test_what_passes_costs_only_time(outputs: Path, whole: dict, name: str) -> None:
    fault = PASSING[name]
    handler = Counting(lambda e, n: (fault(e), True) if n % 5 == 1 else None)
    with Server(handler) as server:
        job = evaluated(server, outputs)
    assert handler.seen > len(whole), "the control: faults were met"
    assert set(statuses(job)) <= {"ok", "repaired"}
    check_whole(job, whole, handler)


ENDS = {
    "html": lambda e, n: (e.send(200, HTML, "text/html"), True),
    "503": lambda e, n: (e.error(503, "gone"), True),
    "cut streams": lambda e, n: (PASSING["cut in an event"](e), True),
    "429 for hours": lambda e, n: (e.error(429, "tomorrow", Retry_After="9999"), True),
    "refuses video": lambda e, n: (e.error(400, "At most 0 video(s) may be provided"), True),
    "refuses some": lambda e, n: (e.error(400, "no"), True) if len(e.text) % 2 else None,
}


@pytest.mark.parametrize("name", ENDS)
def test_what_does_not_pass_ends_in_statuses_and_is_asked_again(
    outputs: Path, whole: dict, name: str
) -> None:
    handler = Counting(ENDS[name])
    with Server(handler) as server:
        broken = evaluated(server, outputs, retries=1)
        found = statuses(broken)
        assert found["error"] > 0
        assert sum(found.values()) == len(whole)
        assert all(r.error for r in broken.responses() if r.status == "error")
        page = render.of(reading.gather(broken)).html
        assert f"{found['error']:,} of {len(whole):,} asks ended in an error" in page
        handler.fault = lambda e, n: None
        job = evaluated(server, outputs)
    assert job.run.folder == broken.run.folder
    check_whole(job, whole, handler)


@pytest.mark.parametrize("patient", [True, False])
def test_a_server_killed_and_restarted_in_mid_run(
    outputs: Path, whole: dict, patient: bool
) -> None:
    """A patient client waits for the restart; an impatient one ends in errors and resumes."""
    middle = threading.Event()
    handler = Counting(lambda e, n: middle.set() if n > 6 else None)
    server = Server(handler).__enter__()
    jobs: list[Evaluation] = []
    retries = {"retries": 12, "backoff_s": 0.02} if patient else {"retries": 0}
    work = threading.Thread(target=lambda: jobs.append(evaluated(server, outputs, **retries)))
    work.start()
    assert middle.wait(60)
    server.__exit__()
    if not patient:
        work.join(60)
        assert statuses(jobs[0])["error"] > 0
    time.sleep(0.05)
    with server:  # again, at the same port
        if patient:
            work.join(60)
            job = jobs[0]
            assert set(statuses(job)) <= {"ok", "repaired"}
        else:
            job = evaluated(server, outputs)
    # What was under way when it died was answered for nobody, so it may be answered twice.
    assert sum(handler.answered.values()) - len(whole) <= QUICK["concurrency"]
    assert texts(job) == whole
    kept = [r for r in job.run.read("responses") if r["status"] not in ("error", "not_run")]
    assert len(kept) == len(whole)


def test_a_slow_and_a_silent_server(outputs: Path, whole: dict) -> None:
    released = threading.Event()

    def slow(exchange: Exchange, number: int) -> object:
        if number in (3, 4):
            return released.wait(30) or True
        return time.sleep(0.005)

    handler = Counting(slow)
    with Server(handler) as server:
        job = evaluated(server, outputs, timeout_s=2.0)
        released.set()
    assert handler.seen >= len(whole) + 2
    check_whole(job, whole, handler)


def test_no_key_is_in_anything_a_run_writes(
    outputs: Path, whole: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted in the environment and echoed by the server in replies and errors."""
    from bench_lib.judge import page as judge_page
    from bench_lib.judge.job import Judging
    from bench_lib.params.readings import JudgeParams

    key, home = "sk-planted0123456789abcdefSECRET", str(Path.home())
    monkeypatch.setenv("TEST_RUN_KEY", key)
    dice = random.Random(3)

    def echo(exchange: Exchange, number: int) -> object:
        told = exchange.http.headers["Authorization"]
        if dice.random() < 0.2:
            return exchange.error(401, f"Incorrect API key provided: {told}"), True
        reply = {"decision": "SILENT", "answer": "A", "reason": f"your key is {told}"}
        return exchange.reply(json.dumps(reply), reasoning_content=told), True

    with Server(Counting(echo)) as server:
        job = evaluated(server, outputs, key_env="TEST_RUN_KEY")
        assert server.headers[0]["Authorization"] == f"Bearer {key}"
        render.save(reading.gather(job))
        judging = Judging.open(JudgeParams(run=job.run.folder.name))
        judging.execute(progress=False)
        judge_page.write(judging)
    files = [path for path in outputs.rglob("*") if path.is_file()]
    assert any("***" in path.read_text(errors="ignore") for path in files), "the control"
    for path in files:
        text = path.read_text(errors="ignore")
        assert key not in text, path
        assert key[3:] not in text, path
        assert f"{home}/" not in text, path


def test_the_home_folder_is_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A home of its own, with outputs, media and prompts in it."""
    home = tmp_path / "home" / "user"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BENCH_OUTPUTS", str(home / "work" / "outputs"))
    texts = home / "texts"
    texts.mkdir(parents=True)
    (texts / "mpa.txt").write_text("At $clock, from $start: speak or be silent.")
    params = EvalParams(
        method="raw_video", method_args={"max_frames": 4}, source="dollhouse-small",
        tasks=["CT", "MPA"], limit=1, store="lossless", prompts=str(texts),
        backbone_args={**QUICK, "media": "file", "media_folder": str(home / "media"),
                       "revision": str(home / "weights")},
    )  # fmt: skip
    told = f"no file {home}/media/x.jpeg here"
    handler = Counting(lambda e, n: (e.error(400, told), True) if n == 0 else None)
    from dataclasses import replace

    with Server(handler) as server:
        params = replace(params, backbone=f"endpoint:toy@{server.url}")
        job = Evaluation.open(params)
        job.execute(progress=False)
        print(evaluation_page.write(job), repr(evaluation_page.write(job)), job.params.changed())
    files = [p for p in (home / "work").rglob("*") if p.is_file()]
    assert len(files) > 4
    for path in files:
        assert str(home) not in path.read_text(errors="ignore"), path
    lines = [r for r in job.responses() if r.status == "error"]
    assert "~/media/x.jpeg" in lines[0].error
    shown = capsys.readouterr().out
    assert "~/work/outputs" in shown
    assert str(texts) not in shown
    again = Evaluation.open(params)
    assert again.run.folder == job.run.folder
