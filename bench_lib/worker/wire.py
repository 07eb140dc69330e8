"""What the bench hands to a worker, as the plain values of the protocol."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from bench_lib.chat import media
from bench_lib.errors import BenchError, nearest
from bench_lib.measure import count
from bench_lib.methods.base import Alert, Generation, InputClass, Note, Query
from bench_lib.stream import Clip, SessionInfo, Size

PROTOCOL = 1


@dataclass(frozen=True)
class Capabilities:
    """What a worker says of itself in `can`; the meanings are those of `Method`.

    `reactive`: it answers questions. `proactive`: it can watch (`watches`). `audio`, `captions`:
    it is sent them. `notes`: instructions change its memory (`notes_touch_state`). `forks`: it has
    `branch`. `saves`: it has `save` and `load`.
    """

    reactive: bool = True
    proactive: bool = False
    tools: bool = False
    audio: bool = False
    captions: bool = False
    notes: bool = False
    forks: bool = False
    saves: bool = False
    persistent: bool = False
    bounded: bool = False
    sees: bool = True
    causal: bool = False
    input_class: InputClass = "incremental"


def capabilities(worker: str, said: Any) -> Capabilities:
    """What a worker can; BenchError names what is said wrongly."""
    known = {f.name: f for f in fields(Capabilities)}
    if not isinstance(said, dict):
        raise BenchError(f"worker {worker}: can must be an object, not {said!r}")
    for name, value in said.items():
        if name not in known:
            raise BenchError(f"worker {worker}: can has {name!r}; {nearest(name, known)}")
        allowed = get_args(InputClass) if name == "input_class" else (True, False)
        if value not in allowed or type(value) is not type(allowed[0]):
            raise BenchError(f"worker {worker}: can.{name} is {value!r}, not one of {allowed}")
    return Capabilities(**said)


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


def text_of(reply: Mapping[str, Any], op: str, key: str = "text") -> str:
    """A text of a reply; BenchError where it is missing."""
    value = reply.get(key)
    if not isinstance(value, str):
        raise BenchError(f"the worker's reply to {op} needs {key!r}, a text, not {value!r}")
    return value


def alerts_of(reply: Mapping[str, Any]) -> tuple[Alert, ...]:
    """What a worker says of its own accord; BenchError where an alert is wrong."""
    found = []
    for alert in _list(reply, "alerts"):
        try:
            times = float(alert["observed_s"]), float(alert["delivered_s"])
            found.append(Alert(str(alert["key"]), str(alert["text"]), *times))
        except (KeyError, TypeError, ValueError):
            wanted = "{key, text, observed_s, delivered_s}"
            raise BenchError(f"a worker's alert must be {wanted}, not {alert!r}") from None
    return tuple(found)


def counted(reply: Mapping[str, Any]) -> None:
    """Count the work that a reply tells of; BenchError where it is no number."""
    for name, number in (reply.get("counters") or {}).items():
        if type(number) is not int or number < 0:
            raise BenchError(f"a worker's counter {name!r} must be a whole number, not {number!r}")
        count(str(name), number)


def _list(reply: Mapping[str, Any], name: str) -> list[Any]:
    value = reply.get(name) or []
    if not isinstance(value, list):
        raise BenchError(f"a worker's {name} must be a list, not {value!r}")
    return value
