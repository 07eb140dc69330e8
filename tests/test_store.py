"""The frame store: later passes decode nothing and see the same pixels; no kill can harm it."""

from __future__ import annotations

import errno
import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from barcode import RATE, number, session, write
from numpy.typing import NDArray
from PIL import Image

from bench_lib.errors import BenchError
from bench_lib.schema import Session
from bench_lib.video.pack import Pack, PackWriter
from bench_lib.video.session import Sample, VideoError, open_session
from bench_lib.video.store import FrameStore
from bench_lib.video.stream import ArrayFrame, StoredFrame

TIMES = range(0, 6000, 100)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sound = np.random.default_rng(0).normal(0, 0.2, 6 * RATE).astype(np.float32)
    folder = tmp_path_factory.mktemp("film")
    return write(folder / "film.mkv", TIMES, sound=sound, sound_codec="flac", grain=60)


@pytest.fixture
def recorded(film: Path) -> Session:
    return session((film, 0, 6))


class Pass:
    """One pass over a session."""

    def __init__(
        self, recorded: Session, store: FrameStore | None, stretches: Any = None, **options: Any
    ) -> None:
        stretches = stretches or [(0, recorded.duration_s)]
        options = {"fps": 4, "size": (60, 80)} | options
        with open_session(recorded, stretches=stretches, store=store, **options) as stream:
            self.samples: list[Sample] = list(stream)
            self.decoded, self.served = stream.decoded_frames, stream.served
        self.pixels = [s.frame.pixels() for s in self.samples]
        self.times = [s.t_s for s in self.samples]


def same(a: list[NDArray[Any]], b: list[NDArray[Any]]) -> bool:
    return len(a) == len(b) > 0 and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def packs(store: FrameStore) -> list[Path]:
    return sorted(store.folder.glob("*.pack"))


@pytest.mark.parametrize("form", ["lossless", "jpeg"])
def test_a_second_pass_decodes_nothing_and_sees_the_same(
    recorded: Session, tmp_path: Path, form: Any
) -> None:
    bare = Pass(recorded, None)
    with FrameStore(tmp_path, form) as store:
        first = Pass(recorded, store)
    with FrameStore(tmp_path, form) as store:
        second = Pass(recorded, store)
        assert (second.decoded, second.served) == (0, "store")
        assert first.decoded > 0
        assert first.times == second.times == bare.times
        assert same(first.pixels, second.pixels)
        assert same(first.pixels, bare.pixels) == (form == "lossless")
        assert all(isinstance(s.frame, StoredFrame) for s in [*first.samples, *second.samples])
        # A frame is asked for at another size: from the stored pixels.
        frame = second.samples[3].frame
        assert frame.pixels((30, 40)).shape == (30, 40, 3)
    if form == "jpeg":
        buffer = io.BytesIO()
        Image.fromarray(bare.pixels[0]).save(buffer, "JPEG", quality=90)
        assert np.array_equal(first.pixels[0], np.asarray(Image.open(buffer)))


def test_repeats_are_kept_once(tmp_path: Path) -> None:
    slow = write(tmp_path / "slow.mkv", range(0, 6000, 1000), grain=60)
    with FrameStore(tmp_path / "store") as store:
        first, second = (Pass(session((slow, 0, 6)), store, fps=10) for _ in range(2))
        assert [number(p) for p in second.pixels] == [k // 10 for k in range(60)]
        assert same(first.pixels, second.pixels)
        assert len({s.frame.offset for s in second.samples}) == 6  # type: ignore[attr-defined]


def test_sound_is_kept_and_cut_like_the_pictures(recorded: Session, tmp_path: Path) -> None:
    part = [(1.1, 2.6)]
    bare = Pass(recorded, None, audio=True), Pass(recorded, None, part, audio=True)
    with FrameStore(tmp_path) as store:
        assert Pass(recorded, store, audio=True).decoded > 0
        whole, cut = Pass(recorded, store, audio=True), Pass(recorded, store, part, audio=True)
        assert whole.decoded == cut.decoded == 0
        for ours, theirs in zip((whole, cut), bare, strict=True):
            assert same([s.audio for s in ours.samples], [s.audio for s in theirs.samples])  # type: ignore[misc]
        assert Pass(recorded, store).decoded > 0  # without sound it is another session


def test_a_pack_serves_what_lies_inside_it(recorded: Session, tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        whole = Pass(recorded, store, [(0, 3), (3, 4), (5, 6)])
        inner = Pass(recorded, store, [(0.5, 3.9), (5.5, 6)])
        assert inner.decoded == 0
        chosen = [p for t, p in zip(whole.times, whole.pixels, strict=True) if t in inner.times]
        assert same(inner.pixels, chosen)
        assert Pass(recorded, store, [(3.5, 5.5)]).decoded > 0
        assert Pass(recorded, store, fps=8).decoded > 0
        assert Pass(recorded, store, size=(30, 40)).decoded > 0


def test_another_content_under_the_same_name_is_decoded(tmp_path: Path) -> None:
    file = write(tmp_path / "film.mkv", TIMES)
    recorded = session((file, 0, 6))
    with FrameStore(tmp_path / "store") as store:
        assert number(Pass(recorded, store).pixels[0]) == 0
        write(file, TIMES, numbers=range(500, 560))
        again = Pass(recorded, store)
        assert again.decoded > 0
        assert number(again.pixels[0]) == 500


def test_an_unreadable_or_truncated_session_is_never_kept(film: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.mkv"
    data = film.read_bytes()
    broken.write_bytes(data[: len(data) // 2])
    with FrameStore(tmp_path / "store") as store:
        for _ in range(2):
            with pytest.raises(VideoError, match="broken"):
                Pass(session((broken, 0, 6)), store)
        with pytest.raises(VideoError, match="gone"):
            Pass(session((tmp_path / "gone.mp4", 0, 6)), store)
        assert [Pack.read(path) for path in packs(store)] in ([None, None], [None])


def test_a_pass_that_stops_early_is_not_kept(recorded: Session, tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        with open_session(recorded, 4, [(0, 6)], store=store) as stream:
            frame = next(iter(stream)).frame
        assert number(frame.pixels()) == 0  # what was handed out stays while the store lives
        assert Pass(recorded, store, size=None).decoded > 0
    with FrameStore(tmp_path) as store:
        assert Pass(recorded, store, size=None).decoded == 0


def test_the_least_recently_used_session_goes_first(film: Path, tmp_path: Path) -> None:
    sessions = [session((film, start, start + 2)) for start in range(4)]
    with FrameStore(tmp_path) as store:
        Pass(sessions[0], store)
    size = sum(path.stat().st_size for path in tmp_path.glob("*.pack"))

    def use(index: int) -> int:
        """Each pass by an owner of its own, so that nothing is in use any more."""
        with FrameStore(tmp_path, limit_bytes=int(3.7 * size)) as store:
            decoded = Pass(sessions[index], store).decoded
        return decoded

    assert use(0) == 0
    assert use(1) > 0
    assert use(2) > 0
    assert use(0) == 0  # used again: 1 is the oldest now
    assert use(3) > 0
    assert use(0) == use(2) == use(3) == 0
    assert sum(path.stat().st_size for path in tmp_path.glob("*.pack")) <= 3.7 * size
    assert use(1) > 0


def test_what_is_in_use_is_not_evicted(film: Path, tmp_path: Path) -> None:
    one, two = session((film, 0, 3)), session((film, 3, 6))
    with FrameStore(tmp_path, limit_bytes=200_000) as owner:
        held = Pass(one, owner)
        (pack,) = packs(owner)
        with FrameStore(tmp_path, limit_bytes=1000) as other:
            full = Pass(two, other)  # no room: decoded and right, but not kept
            assert all(isinstance(s.frame, ArrayFrame) for s in full.samples)
            assert same(full.pixels, Pass(two, None).pixels)
        assert packs(owner) == [pack]
        assert same([s.frame.pixels() for s in held.samples], held.pixels)
    with FrameStore(tmp_path, limit_bytes=1000) as other:
        Pass(two, other)
        assert pack not in packs(other)
    with pytest.raises(BenchError, match="no longer holds"):
        held.samples[0].frame.pixels()


@pytest.mark.parametrize("form", ["lossless", "jpeg"])
def test_a_session_that_outgrows_the_store_is_right_to_its_end(
    recorded: Session, tmp_path: Path, form: Any
) -> None:
    with FrameStore(tmp_path / "whole", form) as store:
        whole = Pass(recorded, store)
        size = packs(store)[0].stat().st_size
    with FrameStore(tmp_path / "small", form, limit_bytes=size // 2) as store:
        partly = Pass(recorded, store)
        kinds = [type(s.frame) for s in partly.samples]
        assert kinds[0] is StoredFrame
        assert kinds[-1] is ArrayFrame
        assert same(partly.pixels, whole.pixels)
        assert sum(path.stat().st_size for path in packs(store)) < size * 0.6
        assert Pass(recorded, store).decoded > 0


WRITER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from barcode import session
from bench_lib.video.store import FrameStore
from bench_lib.video.session import open_session
store = FrameStore(Path({folder!r}))
stream = open_session(session((Path({film!r}), 0, 6)), 4, [(0, 6)], (60, 80), store=store)
for sample in stream:
    print(sample.t_s, flush=True)
    if sample.t_s == {stop}:
        sys.stdin.read()
print("complete", flush=True)
sys.stdin.read()
"""


def writer(film: Path, folder: Path, stop: float) -> subprocess.Popen[str]:
    code = WRITER.format(path=sys.path, folder=str(folder), film=str(film), stop=stop)
    return subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True)


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout
    assert any(found.strip() == line for found in process.stdout)


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe
        pipe.close()


def test_a_half_written_session_is_not_used_and_is_cleared_away(
    recorded: Session, film: Path, tmp_path: Path
) -> None:
    process = writer(film, tmp_path, stop=3.0)
    wait_for(process, "3.0")
    with FrameStore(tmp_path) as store:
        (half,) = packs(store)
        assert Pack.read(half) is None
        assert half.stat().st_size > 0
        ours = Pass(recorded, store)  # side by side with a living writer of the same session
        assert ours.decoded > 0
        assert half.exists()
        end(process)
        other = Pass(session((film, 1, 2)), store)
        assert other.decoded > 0
        assert not half.exists()
        assert Pass(recorded, store).decoded == 0
        assert len(list(tmp_path.glob("*.lease"))) == 1


def test_another_process_reads_what_one_wrote(
    recorded: Session, film: Path, tmp_path: Path
) -> None:
    process = writer(film, tmp_path, stop=-1)
    wait_for(process, "complete")
    with FrameStore(tmp_path, limit_bytes=1) as store:
        theirs = Pass(recorded, store)
        assert theirs.decoded == 0
        assert same(theirs.pixels, Pass(recorded, None).pixels)
        Pass(session((film, 1, 2)), store)
        assert len(packs(store)) == 1  # over the limit, but in use by the other
    end(process)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_pack_is_not_used(recorded: Session, tmp_path: Path, damage: str) -> None:
    with FrameStore(tmp_path) as store:
        Pass(recorded, store)
    (pack,) = tmp_path.glob("*.pack")
    data = bytearray(pack.read_bytes())
    if damage == "flip":
        data[-60] ^= 255
    pack.write_bytes(data[:-5] if damage == "cut" else b"" if damage == "empty" else data)
    with FrameStore(tmp_path) as store:
        assert Pass(recorded, store).decoded > 0
        assert Pass(recorded, store).decoded == 0


def test_handles_cost_nothing(recorded: Session, tmp_path: Path) -> None:
    with FrameStore(tmp_path) as store:
        Pass(recorded, store)
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        kept = [sample.frame for _ in range(20) for sample in Pass(recorded, store).samples]
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
        assert not any(isinstance(value, np.ndarray) for f in kept for value in vars(f).values())


def test_an_unknown_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="lossless, jpeg"):
        FrameStore(tmp_path, "png")  # type: ignore[arg-type]


def test_a_full_disk_is_no_room(
    recorded: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def write_some(self: PackWriter, data: NDArray[Any]) -> int:
        if len(written) == 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(data)
        return kept(self, data)

    kept = PackWriter._write
    monkeypatch.setattr(PackWriter, "_write", write_some)
    with FrameStore(tmp_path) as store:
        full = Pass(recorded, store)
        assert same(full.pixels, Pass(recorded, None).pixels)
        assert [type(s.frame) for s in full.samples][5:7] == [StoredFrame, ArrayFrame]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BenchError, match="BENCH_CACHE"):
        FrameStore(tmp_path / "file" / "frames")
