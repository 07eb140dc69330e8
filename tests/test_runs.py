"""A run's folder: identity, append-only records, what resuming reads."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from bench_lib.errors import BenchError
from bench_lib.params.evaluate import EvalParams
from bench_lib.runs.folder import Run
from bench_lib.runs.identity import NOT_IDENTITY, identity
from bench_lib.schema import Response


def response(candidate: str, status: str = "ok", text: str = "") -> Response:
    return Response(
        trajectory="T",
        session="S",
        candidate=candidate,
        probe="q",
        task="ER",
        cutoff_s=1.0,
        closed=True,
        status=status,  # type: ignore[arg-type]
        raw_text=text,
    )


def opened(**changes) -> Run:
    run = Run.open("03_eval", "x", EvalParams(method="null", **changes).as_dict())
    run.begin()
    return run


def test_what_identifies_a_run(outputs: Path) -> None:
    base = opened().folder
    same = {
        "limit": 3, "tasks": ["ER"], "trajectories": ["T"], "shard": "3/8", "workers": 4,
        "device": "cuda:1", "data_root": "/elsewhere", "name": "n", "question": "?", "at": "S",
        "store_gib": 1.0,
    }  # fmt: skip
    for key, value in same.items():
        assert opened(**{key: value}).folder == base, key
    other = {"seed": 1, "condition": "oracle", "fps": 2.0, "mode": "replay", "store": "jpeg",
             "max_pixels": 9, "prompts": "other", "method_args": {"fps": 2}}  # fmt: skip
    for key, value in other.items():
        assert opened(**{key: value}).folder != base, key
    assert set(NOT_IDENTITY) <= set(EvalParams().as_dict())


def test_the_manifest_says_what_ran(outputs: Path) -> None:
    run = opened()
    opened(limit=2)
    manifest = run.manifest()
    assert [p["params"]["limit"] for p in manifest["processes"]] == [0, 2]
    assert manifest["identity"]["versions"]["torch"]


def test_a_torn_last_line_is_work_to_be_done_again(outputs: Path) -> None:
    run = opened()
    run.append("responses", response("a"))
    run.append("responses", response("b"))
    run.close()
    (file,) = run.folder.glob("responses.*.jsonl")
    file.write_text(file.read_text()[:-9])
    assert run.done() == {("T", "a", "q")}
    again = opened()
    again.append("responses", response("b"))
    assert again.done() == {("T", "a", "q"), ("T", "b", "q")}
    assert len(list(run.folder.glob("responses.*.jsonl"))) == 2


def test_a_damaged_line_is_named(outputs: Path) -> None:
    run = opened()
    run.append("responses", response("a"))
    run.close()
    (file,) = run.folder.glob("responses.*.jsonl")
    file.write_text("{broken\n" + file.read_text())
    with pytest.raises(BenchError, match=r"responses.*line 1 is not JSON"):
        run.responses()


def test_failures_are_tried_again_and_answers_are_not(outputs: Path) -> None:
    run = opened()
    for status in ("error", "not_run", "ok", "unparsed", "refused", "repaired"):
        run.append("responses", response(status, status))
    assert run.done() == {("T", s, "q") for s in ("ok", "unparsed", "refused", "repaired")}
    run.append("responses", response("error", "ok", "second try"))
    run.append("responses", response("ok", "error"))
    assert run.responses()["T", "error", "q"].raw_text == "second try"
    assert run.responses()["T", "ok", "q"].status == "ok", "a late failure hid an answer"


def test_the_newest_counts_whatever_its_file_is_called(outputs: Path) -> None:
    """Files are read in the order in which their processes began, not by name."""
    run = opened()
    for host, started, texts in (
        ("z", 1_000, ("oldest", "old")),
        ("a", 20_000, ("newer", "newest")),
    ):
        path = run.folder / f"responses.{host}-7-{started}.jsonl"
        path.write_text("".join(response("c", text=t).model_dump_json() + "\n" for t in texts))
    assert [r["raw_text"] for r in run.read("responses")] == ["oldest", "old", "newer", "newest"]
    assert run.responses()["T", "c", "q"].raw_text == "newest"


def test_of_two_failures_the_newest_counts(outputs: Path) -> None:
    run = opened()
    for status, why in (("error", "out of memory"), ("not_run", "later"), ("error", "timed out")):
        run.append("responses", response("c", status).model_copy(update={"error": why}))
    assert run.responses()["T", "c", "q"].error == "timed out"


def test_a_folder_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("BENCH_OUTPUTS", str(blocked))
    with pytest.raises(BenchError, match=r"cannot write .*set BENCH_OUTPUTS"):
        opened()


def _append(folder: str, name: str) -> None:
    run = Run(Path(folder), {})
    for k in range(200):
        run.append("responses", response(f"{name}{k}"))


def test_many_processes_fill_one_folder(outputs: Path) -> None:
    run = opened()
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=_append, args=(str(run.folder), n)) for n in "abcd"]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(run.responses()) == 800
    assert len(list(run.folder.glob("responses.*.jsonl"))) == 4


def test_a_lock_is_held_by_one(outputs: Path) -> None:
    run, other = opened(), opened()
    with run.locked("trajectory T", wait=False) as mine:
        assert mine
        with other.locked("trajectory T", wait=False) as theirs:
            assert not theirs
    with other.locked("trajectory T", wait=False) as later:
        assert later


def test_a_home_folder_is_written_short(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    run = opened(data_root="/home/me/data")
    text = (run.folder / "manifest.json").read_text()
    assert "/home/me" not in text
    assert json.loads(text)["processes"][0]["params"]["data_root"] == "~/data"


def test_how_a_server_is_reached_is_no_part_of_a_run() -> None:
    def ident(backbone: str = "endpoint:m@http://a:8000/v1", **args: object) -> dict:
        return identity({"backbone": backbone, "backbone_args": args})

    plain = ident()
    assert ident(concurrency=2, retries=1, key_env="KEY", media_ids=True, max_calls=9) == plain
    for shaping in ({"thinking": "off"}, {"video": "mp4"}, {"quality": 50}, {"revision": "r1"}):
        assert ident(**shaping) != plain, shaping
    other = "endpoint:m@http://b:9000/v1,http://c:9000/v1"
    assert ident(other) != plain, "another address may hold other weights"
    assert ident(other, revision="r1") == ident(revision="r1")
    assert ident("endpoint:n@http://b:9000/v1", revision="r1") != ident(revision="r1")
