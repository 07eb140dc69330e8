"""Archives come from outside: one member is taken out, all else is refused and told."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from arena_folder import NAME, ROW, load, rows
from synthetic import movie

from bench_lib import sources
from bench_lib.errors import BenchError
from bench_lib.sources.stream_arena import archive as archives
from bench_lib.video.session import inspect

MEMBER = "v/v.mp4"
GOOD = {**ROW, "video_id": "w"}


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return movie(tmp_path_factory.mktemp("v") / "v.mp4", 6.0).read_bytes()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tuple:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data), kind, link
    return info, data


def packed(path: Path, *members: tuple) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def listed(root: Path, *archives: Path, **changed: object) -> None:
    found = [
        {
            "video_id": path.stem,
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            **(changed if path.stem == "v" else {}),
        }
        for path in archives
    ]
    (root / "videos_manifest.jsonl").write_text("\n".join(map(json.dumps, found)))


def test_the_video_is_taken_out_once_when_it_is_needed(
    tmp_path: Path, film: bytes, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = rows(tmp_path / "data", ROW)
    tar = packed(
        root / "videos" / "v.tar",
        member("v", kind=tarfile.DIRTYPE),
        member("./v/v.info.json", b"{}"),
        member(MEMBER, film),
        member("v/other.mp4", b"not this one"),
    )
    listed(root, tar)
    (trajectory,) = load(root).trajectories
    target = Path(trajectory.sessions[0].spans[0].file)
    assert trajectory.sessions[0].duration_s == pytest.approx(6.0)
    assert not target.exists()  # loading hundreds of archives copies nothing
    assert sources.prepare(trajectory) == trajectory
    assert target.read_bytes() == film
    assert inspect(target).duration_s == pytest.approx(6.0)
    assert [p.name for p in cache.rglob("*") if p.is_file()] == ["v.mp4"]
    monkeypatch.setattr(archives.hashlib, "file_digest", lambda *a: pytest.fail("read twice"))
    (again,) = load(root).trajectories
    assert sources.prepare(again) == trajectory


def test_another_archive_of_that_name_is_another_video(tmp_path: Path, film: bytes) -> None:
    root = rows(tmp_path / "data", ROW)
    packed(root / "videos" / "v.tar", member(MEMBER, film))
    before = load(root).trajectories[0].sessions[0].spans[0].file
    packed(root / "videos" / "v.tar", member(MEMBER, film), member("v/more", b"x" * 20_000))
    assert load(root).trajectories[0].sessions[0].spans[0].file != before


MALICIOUS: dict[str, tuple[list[tuple], str]] = {
    "leads out": ([member("../v.mp4", b"x")], "leads out"),
    "leads out deep": ([member("v/../../v.mp4", b"x")], "leads out"),
    "absolute": ([member("/tmp/v.mp4", b"x")], "leads out"),
    "backslash": ([member("v\\..\\v.mp4", b"x")], "leads out"),
    "symlink": ([member(MEMBER, kind=tarfile.SYMTYPE, link="/etc/passwd")], "a link"),
    "hard link": ([member(MEMBER, kind=tarfile.LNKTYPE, link="/etc/passwd")], "a link"),
    "linked folder": ([member("v", kind=tarfile.SYMTYPE, link="/tmp")], "a link"),
    "device": ([member("v/zero", kind=tarfile.CHRTYPE)], "a device"),
    "pipe": ([member("v/pipe", kind=tarfile.FIFOTYPE)], "a device"),
    "other video": ([member("w/w.mp4", b"x")], "does not hold 'v/v.mp4'"),
    "empty": ([member(MEMBER)], "empty"),
    "no film": ([member(MEMBER, b"x" * 4000)], "no MP4 file"),
    "many": ([member(f"v/{k}", b"") for k in range(80)], "more than 64"),
}


@pytest.mark.parametrize("name", list(MALICIOUS))
def test_a_malicious_archive_costs_its_own_questions(
    tmp_path: Path, film: bytes, name: str, cache: Path
) -> None:
    members, reason = MALICIOUS[name]
    root = rows(tmp_path / "data", ROW, {**ROW, "qid": 2, "ask_sec": 4}, GOOD)
    # What is malicious comes after the film, so that stopping at the film would not see it.
    first = [] if name in ("other video", "empty", "no film", "symlink", "hard link") else [film]
    packed(root / "videos" / "v.tar", *(member(MEMBER, f) for f in first), *members)
    packed(root / "videos" / "w.tar", member("w/w.mp4", film))
    data = load(root)
    (problem,) = data.problems
    assert reason in problem.reason
    assert problem.record == "2 questions on v"
    assert "2 video cannot be used" in data.note
    assert [t.id for t in data.trajectories] == ["w"]
    sources.prepare(data.trajectories[0])
    assert [p.name for p in cache.rglob("*") if p.is_file()] == ["w.mp4"]
    assert not (tmp_path / "v.mp4").exists()


def _twice(path: Path, film: bytes) -> None:
    packed(path, member(MEMBER, film), member(MEMBER, film))


def _sparse(path: Path, film: bytes) -> None:
    info = tarfile.TarInfo(MEMBER)
    info.pax_headers = {"GNU.sparse.size": str(2**40), "GNU.sparse.map": f"0,{len(film)}"}
    info.size = len(film)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(film))


def _long_header(path: Path, film: bytes) -> None:
    info = tarfile.TarInfo(MEMBER)
    info.pax_headers, info.size = {"comment": "x" * 2**21}, len(film)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(film))


def _compressed(path: Path, film: bytes) -> None:
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(member(MEMBER, film)[0], io.BytesIO(film))


def _claims_more(path: Path, film: bytes) -> None:
    packed(path, member(MEMBER, film))
    path.write_bytes(path.read_bytes()[: 512 + len(film) // 2])


def _noise(path: Path, film: bytes) -> None:
    path.write_bytes(b"\1" * 20_000)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_twice, "twice"),
        (_sparse, "sparse"),
        (_long_header, "header of"),
        (_compressed, "no readable tar"),
        (_claims_more, "cut short|no readable tar"),
        (_noise, "no readable tar"),
    ],
)
def test_a_broken_archive_is_refused(
    tmp_path: Path, film: bytes, make: Callable[[Path, bytes], None], reason: str
) -> None:
    root = rows(tmp_path / "data", ROW)
    (root / "videos").mkdir()
    make(root / "videos" / "v.tar", film)
    with pytest.raises(BenchError, match=reason):
        load(root)
    packed(root / "videos" / "v.tar", member(MEMBER, film))
    assert load(root).trajectories


def test_the_manifest_is_kept_to(tmp_path: Path, film: bytes, cache: Path) -> None:
    root = rows(tmp_path / "data", ROW, GOOD)
    tars = [packed(root / "videos" / f"{n}.tar", member(f"{n}/{n}.mp4", film)) for n in "vw"]
    listed(root, *tars, bytes=99)
    (problem,) = load(root).problems
    assert "the manifest says 99; download it again" in problem.reason
    listed(root, tars[1])
    (problem,) = load(root).problems
    assert "does not list" in problem.reason
    listed(root, *tars, sha256="none")
    damaged, unlisted = load(root).problems
    assert damaged.field == "bytes, sha256"
    assert "does not list" in unlisted.reason


def test_a_wrong_digest_costs_the_video_and_is_remembered(
    tmp_path: Path, film: bytes, cache: Path
) -> None:
    root = rows(tmp_path / "data", ROW, GOOD)
    tars = [packed(root / "videos" / f"{n}.tar", member(f"{n}/{n}.mp4", film)) for n in "vw"]
    listed(root, *tars, sha256="0" * 64)
    data = load(root)
    assert not data.problems  # 300 GB are not read to list them
    with pytest.warns(UserWarning, match="the manifest says 0000"):
        sources.prepare(data.trajectories[0])
    assert not list(cache.rglob("*.mp4"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sources.prepare(data.trajectories[1])
    (problem,) = load(root).problems
    assert "has the SHA-256" in problem.reason
    packed(tars[0], member(MEMBER, film))  # downloaded again
    assert not load(root).problems
    listed(root, *tars)
    data = load(root)
    sources.prepare(data.trajectories[0])
    assert not load(root).problems


def test_an_archive_changed_since_is_not_used(tmp_path: Path, film: bytes, cache: Path) -> None:
    root = rows(tmp_path / "data", ROW)
    tar = packed(root / "videos" / "v.tar", member(MEMBER, film))
    (trajectory,) = load(root).trajectories
    packed(tar, member(MEMBER, film), member("v/more", b"x" * 20_000))
    with pytest.warns(UserWarning, match="has changed"):
        sources.prepare(trajectory)
    assert not list(cache.rglob("*.mp4"))


def test_a_cache_without_room_says_so(
    tmp_path: Path, film: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = rows(tmp_path / "data", ROW)
    packed(root / "videos" / "v.tar", member(MEMBER, film))
    (trajectory,) = load(root).trajectories
    full = type("Usage", (), {"free": 10})
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda path: full)
    with pytest.raises(BenchError, match="BENCH_CACHE"):
        sources.prepare(trajectory)


def test_only_what_was_loaded_can_be_prepared(tmp_path: Path, film: bytes) -> None:
    root = rows(tmp_path / "data", ROW)
    packed(root / "videos" / "v.tar", member(MEMBER, film))
    (trajectory,) = sources.load(NAME, str(root)).trajectories
    (session,) = trajectory.sessions
    other = session.spans[0].model_copy(update={"file": "elsewhere.mp4"})
    moved = session.model_copy(update={"spans": (other,)})
    with pytest.raises(BenchError, match="not loaded in this process"):
        sources.prepare(trajectory.model_copy(update={"sessions": (moved,)}))
