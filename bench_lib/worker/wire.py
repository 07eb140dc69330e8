"""What the bench hands to a worker, as the plain values of the protocol."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_lib.exchange import Generation, Note, Query
from bench_lib.messages import media
from bench_lib.video.stream import SAMPLE_RATE, Clip, SessionInfo, Size
from bench_lib.worker.hello import Capabilities


@dataclass
class Media:
    """How pictures and sound are sent: inside the messages, or as files of a folder."""

    image: str
    quality: int
    folder: Path | None = None
    files: int = 0

    def put(self, form: str, data: bytes) -> dict[str, str]:
        """`{form: base64}`, or `{"file": path}`."""
        if self.folder is None:
            return {form: b64encode(data).decode()}
        self.files += 1
        path = self.folder / f"{self.files:08d}.{form}"
        path.write_bytes(data)
        return {"file": str(path)}


def clip_of(clip: Clip, size: Size, can: Capabilities, how: Media) -> dict[str, Any]:
    """The body of `observe`."""
    frames = [
        {"t_s": f.t_s, **how.put(how.image, media.image(f, size, how.image, how.quality))}
        for f in clip.frames
    ]
    audio = None
    if can.audio and clip.audio is not None and len(clip.audio):
        audio = {"start_s": clip.audio_start_s, **how.put("wav", media.wav(clip.audio))}
    captions = [c.model_dump() for c in clip.captions] if can.captions else []
    return {"session": clip.session, "frames": frames, "captions": captions, "audio": audio}


def end_of(clip: Clip) -> float:
    """The newest instant of a clip, in seconds of its session."""
    ends = [frame.t_s for frame in clip.frames[-1:]] + [c.end_s for c in clip.captions]
    if clip.audio is not None and len(clip.audio):
        ends.append(clip.audio_start_s + len(clip.audio) / SAMPLE_RATE)
    return max(ends, default=0.0)


def session_of(info: SessionInfo) -> dict[str, Any]:
    """A session as a worker learns of it."""
    return {**asdict(info), "frame_size": list(info.frame_size)}


def note_of(note: Note) -> dict[str, Any]:
    """A note."""
    return asdict(note)


def query_of(query: Query) -> dict[str, Any]:
    """A question."""
    return {
        "text": query.text,
        "system": query.system,
        "session": query.session,
        "cutoff_s": query.cutoff_s,
        "closed": query.closed,
        "contract": query.contract,
        "options": [option.model_dump() for option in query.options],
        "notes": [note_of(note) for note in query.notes],
    }


def generation_of(generation: Generation) -> dict[str, Any]:
    """Decoding settings."""
    found = asdict(generation)
    del found["keep_logits"]
    return found
