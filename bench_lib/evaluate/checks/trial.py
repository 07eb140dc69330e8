"""A method on trial: how it is made, small films for it, and a model that mirrors what it is shown.

`python -m bench_lib.evaluate.checks.trial FOLDER ...` answers from memories that `keep` saved, in a
process of its own.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib import methods, paths
from bench_lib.chat.cache import fingerprint, request_parts
from bench_lib.exchange import Generation, Query, Reply
from bench_lib.memories.method import Method
from bench_lib.messages.chat import Chat, ChatReply, Contract, Message
from bench_lib.messages.contract import checked
from bench_lib.video.stream import ArrayFrame, Clip, SessionInfo, resized

SIDE = 112
WALL_S = 36_000.0
SHORT = Generation(max_new_tokens=2, keep_logits=True)
QUESTION = "Where is the red cup?"


class Mirror(Chat):
    """A message model whose reply is a digest of all that it is shown, in a form that fits.

    It remembers nothing between calls, so that its replies tell apart whatever a method showed.
    """

    id = "mirror"

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """See `Chat.complete`."""
        return checked(self._send, messages, contract, generation)

    def _send(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        key = fingerprint(request_parts(messages, contract, generation))
        if contract.schema:
            text = json.dumps(_instance(contract.schema, key))
        else:
            # Prose, with a search in it for methods that look for one.
            call = {"name": "search_memory", "arguments": {"text_input": key}}
            text = f"{key} <tool_call>{json.dumps(call)}</tool_call>"
        logits = np.frombuffer(bytes.fromhex(key), np.uint8).astype(np.float32)
        return ChatReply(text, logits=logits)


def _instance(schema: Mapping[str, Any], key: str) -> Any:
    """A value of a JSON schema whose texts are the digest; what it may leave out, but texts, is."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = "string" if _may_be_text(schema) else schema.get("type", "null")
    if kind == "object":
        wanted = schema.get("required", ())
        parts = schema.get("properties", {}).items()
        return {n: _instance(s, key) for n, s in parts if n in wanted or _may_be_text(s)}
    if kind == "array":
        return [_instance(schema["items"], key)] if schema.get("minItems") else []
    return {"string": key, "boolean": True, "null": None}.get(kind, int(key, 16) % 2)


def _may_be_text(schema: Mapping[str, Any]) -> bool:
    return any(s.get("type") == "string" for s in (schema, *schema.get("anyOf", ())))


@dataclass(frozen=True)
class Trial:
    """How a method is made; calling it makes one, attached to its model.

    `model` is `mirror` for message methods and `tiny` for the others unless given; a message method
    also takes `ideal` and `tiny`.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""

    @classmethod
    def scaled(cls, name: str, model: str = "") -> Trial:
        """With windows that a few dozen frames fill, as `scaled.json` gives them, if it does."""
        known = json.loads((Path(__file__).parent / "scaled.json").read_text())
        return cls(name, known.get(name, {}), model)

    def __call__(self) -> Method:
        """A new object of the method, before `reset`."""
        method = methods.load(self.name, **self.args)
        if method.model == "none":
            return method
        if method.model == "chat" and self.model in ("", "mirror"):
            return method.attach(Mirror())
        if method.model == "chat" and self.model == "ideal":
            from bench_lib.dollhouse.ideal.observer import IdealChat

            return method.attach(IdealChat())
        backbone = _backbone(self.model or "tiny-untrained")
        if method.model == "backbone":
            return method.attach(backbone)
        from bench_lib.chat.local import LocalChat

        return method.attach(LocalChat(backbone))


@lru_cache(maxsize=2)
def _backbone(spec: str) -> Any:
    from bench_lib.opening import backbones

    return backbones.load(spec, device="cpu")


@lru_cache(maxsize=4096)
def picture(seed: int, number: int) -> NDArray[np.uint8]:
    """One frame `[112, 112, 3]` of a film: blocks that change every five frames, and some noise."""
    blocks = np.random.default_rng([seed, number // 5]).integers(0, 200, (4, 4, 3))
    noise = np.random.default_rng([seed, number]).integers(0, 56, (SIDE, SIDE, 3))
    found = (np.kron(blocks, np.ones((SIDE // 4, SIDE // 4, 1))) + noise).astype(np.uint8)
    found.flags.writeable = False
    return found


@dataclass
class Viewing:
    """A method at a place of a stream of films; session k shows the film of seed k."""

    method: Method
    index: int = -1
    t_s: float = 0.0
    size: tuple[int, int] = (SIDE, SIDE)

    @classmethod
    def of(cls, make: Trial, *lengths: int) -> Viewing:
        """A new method that has seen whole sessions of so many frames."""
        method = make()
        method.reset("T001", 42)
        view = cls(method)
        for frames in lengths:
            view.session(frames)
            view.end()
        return view

    def session(
        self, frames: int, seed: int | None = None, changed_from: int | None = None
    ) -> None:
        """Begin a session and show so many frames; from one on those of another film."""
        self.begin()
        self.show(0, frames, seed, changed_from)

    def begin(self) -> None:
        """Begin the next session."""
        self.index += 1
        self.t_s = 0.0
        self.size = self.method.frame_size((SIDE, SIDE))
        wall_s = WALL_S + 3600 * self.index
        self.method.begin_session(
            SessionInfo(f"S{self.index + 1:03d}", self.index, wall_s, self.size)
        )

    def show(
        self, start: int, end: int, seed: int | None = None, changed_from: int | None = None
    ) -> None:
        """Show frames of the current session, clip by clip."""
        own = self.index if seed is None else seed
        step = self.method.clip_frames
        frames = [self._frame(own, k, changed_from) for k in range(start, end)]
        for at in range(0, len(frames), step):
            self.method.observe(Clip(self.index, tuple(frames[at : at + step])))
        if frames:
            self.t_s = frames[-1].t_s

    def _frame(self, seed: int, number: int, changed_from: int | None) -> ArrayFrame:
        changed = changed_from is not None and number >= changed_from
        pixels = picture(seed + 1000 * changed, number)
        return ArrayFrame(number / self.method.fps, resized(pixels, self.size))

    def end(self) -> None:
        """End the session."""
        self.method.end_session(1000)

    def branch(self) -> Viewing:
        """The same place on a branch."""
        return replace(self, method=self.method.branch())

    def ask(self, text: str = QUESTION) -> Reply:
        """The reply to a question here, asked on a branch that is thrown away."""
        query = Query(text, max(0, self.index), self.t_s, system="You see.")
        asked = self.method.branch() if self.method.forks else self.method
        return asked.respond(query, SHORT)


# A memory in another process ----------------------------------------------------------------------

AFTER = 3
"""Frames that are shown after a memory was loaded, before it is asked."""


def fingerprint_of(reply: Reply) -> str:
    """What of a reply must be the same in another process: its text and its logits."""
    logits = b"" if reply.logits is None else np.ascontiguousarray(reply.logits).tobytes()
    return hashlib.sha256(reply.text.encode() + b"\0" + logits).hexdigest()


def keep(trial: Trial, view: Viewing, folder: Path) -> None:
    """Save a memory between sessions, with what another process needs to make its method."""
    view.method.save(folder / "state")
    record = {
        "name": trial.name,
        "args": dict(trial.args),
        "model": trial.model,
        "index": view.index,
        "found_in": list(methods.__path__),
    }
    (folder / "trial.json").write_text(json.dumps(record))


def loaded(folder: Path) -> Viewing:
    """A memory that `keep` saved, in a new object."""
    record = json.loads((folder / "trial.json").read_text())
    for place in record["found_in"]:
        if place not in methods.__path__:
            methods.__path__.append(place)
    method = Trial(record["name"], record["args"], record["model"])()
    method.load(folder / "state")
    return Viewing(method, record["index"])


def goes_on(view: Viewing) -> Reply:
    """A few frames of the next session, and the reply then."""
    view.session(AFTER)
    return view.ask()


def elsewhere(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """What a new process answers from kept memories: for each its reply's digest and its bytes.

    A memory that cannot be loaded or asked there has an `error` in place of both.
    """
    command = [sys.executable, "-m", "bench_lib.evaluate.checks.trial", *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=paths.root())
    if done.returncode:
        raise RuntimeError(f"the other process failed:\n{done.stderr.strip()[-2000:]}")
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _answer(folder: Path) -> dict[str, Any]:
    try:
        view = loaded(folder)
        held = dict(view.method.state_bytes())
        return {"reply": fingerprint_of(goes_on(view)), "bytes": held}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps([_answer(Path(folder)) for folder in sys.argv[1:]]))
