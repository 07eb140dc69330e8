"""Small made-up trajectories over real video files, written with PyAV at test time."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from bench_lib.schema import Candidate, Caption, Moment, Option, Probe, Registration, Session, Span
from bench_lib.schema import Trajectory as Record

SIZE = (48, 64)
RATE = 10


def movie(
    path: Path,
    seconds: float,
    seed: int = 0,
    changed_from_s: float = float("inf"),
    size: tuple[int, int] = SIZE,
) -> Path:
    """A video of coarse random blocks, one pattern a frame; patterns differ after a given time.

    Lossless, so that what comes later changes no earlier pixel.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=RATE, options={"qp": "0", "preset": "ultrafast"}
        )
        stream.height, stream.width, stream.pix_fmt = *size, "yuv420p"
        stream.time_base = Fraction(1, RATE)
        for k in range(round(seconds * RATE)):
            own = seed + 1000 if k / RATE >= changed_from_s else seed
            blocks = np.random.default_rng([own, k]).integers(0, 2, (6, 8, 1)) * 200 + 20
            pixels = np.repeat(
                np.kron(blocks[..., 0], np.ones((size[0] // 6, size[1] // 8)))[..., None], 3, 2
            )
            pixels = np.pad(pixels, ((0, size[0] - len(pixels)), (0, 0), (0, 0)))
            frame = av.VideoFrame.from_ndarray(pixels.astype(np.uint8), "rgb24")
            frame.pts, frame.time_base = k, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def session(path: Path, index: int, seconds: float, **fields) -> Session:
    """A session that is one whole file."""
    return Session(
        id=f"S{index + 1:03d}",
        index=index,
        spans=(Span(file=str(path), start_s=0.0, end_s=seconds),),
        duration_s=seconds,
        wall_start_s=36_000.0 + 3600 * index,
        **fields,
    )


OPTIONS = tuple(Option(id=letter, text=f"thing {letter}") for letter in "ABCD")


def question(name: str, where: str, t_s: float, task: str = "ER", evidence=()) -> Candidate:
    """A multiple-choice candidate."""
    return Candidate(
        id=name,
        task=task,
        question=f"What is {name}?",
        options=OPTIONS,
        answer="B",
        evidence=tuple(evidence),
        probes=(Probe(id="q", session=where, t_s=t_s),),
    )


def household(folder: Path, sessions: int = 3, seconds: float = 10.0, seed: int = 0) -> Record:
    """Sessions of random blocks with candidates of every timing shape.

    Cutoffs fall on clip boundaries, inside clips, on grid instants and between them.
    """
    made = [
        session(
            movie(folder / f"s{seed}-{i}.mp4", seconds, seed=10 * seed + i),
            i,
            seconds,
            captions=(Caption(start_s=1.2, end_s=2.4, text=f"caption {i}"),),
        )
        for i in range(sessions)
    ]
    last = made[-1].id
    window = Probe(
        id="n1", session=last, t_s=6.0, closed=False, polarity="negative", interval=(4.0, 6.0)
    )
    candidates = [
        question("early", "S001", 3.0, "OCR"),
        question("between", last, 4.5, evidence=[Moment(session="S001", start_s=2, end_s=4)]),
        question("late", last, seconds, "TR"),
        Candidate(
            id="held",
            task="ERA",
            question="What comes?",
            options=OPTIONS,
            answer="C",
            probes=(
                Probe(id="n1", session="S002", t_s=3.0, polarity="negative"),
                Probe(id="p1", session="S002", t_s=7.0, polarity="positive"),
            ),
        ),
        Candidate(
            id="told",
            task="PRM",
            registration=Registration(session="S001", t_s=5.5, text="Tell me when it rains."),
            probes=(
                window,
                window.model_copy(
                    update={"id": "p1", "t_s": 9.0, "interval": (7.0, 9.0), "polarity": "positive"}
                ),
            ),
        ),
    ]
    return Record(
        id=f"T{seed}", source="synthetic", sessions=tuple(made), candidates=tuple(candidates)
    )
