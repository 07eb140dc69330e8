"""Replies on disk: written before they are used, never asked for twice.

One JSON file per reply, `FOLDER/ab/ab12….json`, named by its key. The key covers the model's
identity (id, revision, settings), all text, the digests of all media, the contract, the decoding
settings and the seed. Files appear whole or not at all and the first one stays, so processes and
threads may share a folder, on network file systems too.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.chat.reply_stream import STOPS
from bench_lib.exchange import Generation
from bench_lib.measure import count, counting
from bench_lib.messages import media
from bench_lib.messages.chat import Chat, ChatReply, Contract, ContractBroken, Message
from bench_lib.video.stream import Size

VERSION = 1
SERVED = "limit_field"
"""A setting that the identity of every server holds and that of no other model."""


def fingerprint(value: Any) -> str:
    """24 hex digits of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()


def request_parts(
    messages: Sequence[Message], contract: Contract, generation: Generation
) -> dict[str, str]:
    """Digests of what a request consists of, by name; the model's identity is not among them."""
    turns, digests = media.skeleton(messages)
    decoding = asdict(generation)
    seed = decoding.pop("seed")
    schema = dict(contract.schema) if contract.schema else None
    return {
        "text": fingerprint(turns),
        "media": fingerprint(digests),
        "contract": fingerprint([contract.name, schema]),
        "decoding": fingerprint(decoding),
        "seed": str(seed),
    }


def pack(reply: ChatReply, counts: Mapping[str, int]) -> dict[str, Any]:
    """A reply as JSON: durations for instants, the parsed value left out."""
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "stop": reply.stop,
        "first_token_s": reply.first_token_at - reply.ready_at,
        "total_s": reply.done_at - reply.ready_at,
        "usage": dict(reply.usage),
        "rejected": list(reply.rejected),
        "logits": None if reply.logits is None else reply.logits.tolist(),
        "finish": reply.finish,
        "model": reply.model,
        "counters": dict(counts),
    }


def unpack(packed: Mapping[str, Any], contract: Contract) -> ChatReply:
    """The reply, its value parsed anew; counts what it once took; ValueError where it is broken."""
    value = contract.parse(packed["text"]) if contract.parse else None
    now = time.perf_counter()
    logits = packed["logits"]
    reply = ChatReply(
        text=packed["text"],
        value=value,
        reasoning=packed["reasoning"],
        stop=packed["stop"],
        ready_at=now,
        first_token_at=now + packed["first_token_s"],
        done_at=now + packed["total_s"],
        usage=packed["usage"],
        rejected=tuple(packed["rejected"]),
        cached=True,
        logits=None if logits is None else np.array(logits, np.float32),
        finish=packed.get("finish", ""),
        model=packed.get("model", ""),
    )
    for name, n in packed["counters"].items():
        count(name, n)
    return reply


class CachedChat(Chat):
    """`chat` with its replies kept in `folder`; a damaged file is asked for again and replaced.

    So is a reply that may have been cut, and one of another model than the server's present ones.

    Work counters of a kept reply are those of the call that made it, and so are its durations: a
    resumed run shows what an uninterrupted one would. Raw replies to a contract broken twice lie in
    `KEY.rejected.json`; they are kept to be read and are asked for again.
    """

    def __init__(self, chat: Chat, folder: Path | str) -> None:
        self.chat = chat
        self.folder = Path(folder).expanduser()
        self.id, self.device, self.caveat = chat.id, chat.device, chat.caveat
        self.hears, self.program = chat.hears, chat.program
        self._locks: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._guard = threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Chat.identity`."""
        return self.chat.identity

    @property
    def answers_as(self) -> str:
        """See `Chat.answers_as`."""
        return self.chat.answers_as

    def another(self, spec: str) -> Chat:
        """See `Chat.another`; its replies are kept beside these."""
        return CachedChat(self.chat.another(spec), self.folder)

    def frame_size(self, native: Size, max_pixels: int) -> Size:
        """See `Chat.frame_size`."""
        return self.chat.frame_size(native, max_pixels)

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """The kept reply, or the model's, kept before it is returned; raises ChatError."""
        parts = request_parts(messages, contract, generation)
        identity = json.loads(json.dumps(dict(self.identity), default=str))
        key = fingerprint([VERSION, identity, parts])
        path = self.folder / key[:2] / f"{key}.json"
        with self._one_at_a_time(key):
            kept = self._kept(path, contract)
            if kept is not None:
                return kept
            try:
                with counting() as counts:
                    reply = self.chat.complete(messages, contract, generation)
            except ContractBroken as error:
                _write(path.with_suffix(".rejected.json"), {"rejected": list(error.rejected)})
                raise
            entry = {"identity": identity, "parts": parts, "reply": pack(reply, counts)}
            if not _write(path, {**entry, "digest": fingerprint(entry)}, first_stays=True):
                # Another process was faster; both must go on with the same reply.
                kept = self._kept(path, contract)
                if kept is not None:
                    return kept
                _write(path, {**entry, "digest": fingerprint(entry)})
            return reply

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `Chat.embed`; vectors that a server made are kept by text."""
        if type(self.chat).embed is Chat.embed:
            return self.chat.embed(texts)
        paths = {text: self._vector_path(text) for text in texts}
        found = {text: _vector(path) for text, path in paths.items()}
        missing = [text for text, vector in found.items() if vector is None]
        for text, vector in zip(missing, self.chat.embed(missing) if missing else (), strict=True):
            body = {"vector": vector.tolist()}
            _write(paths[text], {**body, "digest": fingerprint(body)})
            found[text] = vector
        return np.array([found[text] for text in texts], np.float32)

    def _vector_path(self, text: str) -> Path:
        key = fingerprint([VERSION, "vector", dict(self.identity), text])
        return self.folder / key[:2] / f"{key}.vector.json"

    def _kept(self, path: Path, contract: Contract) -> ChatReply | None:
        entry = read_entry(path)
        if entry is None:
            return None
        try:
            reply = unpack(entry["reply"], contract)
        except ValueError:  # the contract's parser has become stricter since
            return None
        known = self.answers_as
        return None if reply.model and known and reply.model != known else reply

    @contextlib.contextmanager
    def _one_at_a_time(self, key: str) -> Any:
        """Threads with the same request: the second waits and finds the first one's reply."""
        with self._guard:
            lock = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = threading.Lock()
        with lock:
            yield


def read_entry(path: Path) -> dict[str, Any] | None:
    """A kept entry, or None where there is none, it is damaged, or its reply may have been cut."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        digest = entry.pop("digest")
        return entry if digest == fingerprint(entry) and _whole(entry) else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None


def _whole(entry: Mapping[str, Any]) -> bool:
    """Whether a kept reply came to its end, by the check that a reply meets when it comes in.

    Of a server's replies that were kept before they named their finish reason, only those at their
    token limit are known to have had one.
    """
    reply, identity = entry.get("reply"), entry.get("identity", {})
    if reply is None:
        return True
    if SERVED not in identity or reply["stop"] == "length":
        return reply["stop"] in STOPS.values()
    return reply.get("finish") in STOPS or (
        identity.get("finish") == "assumed" and reply.get("finish") == ""
    )


def _vector(path: Path) -> NDArray[np.float32] | None:
    entry = read_entry(path)
    return None if entry is None else np.array(entry["vector"], np.float32)


def _write(path: Path, record: Mapping[str, Any], first_stays: bool = False) -> bool:
    """Write whole or not at all; False where a file was there that stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    try:
        if not first_stays:
            draft.replace(path)
            return True
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            if path.exists():
                return False
            draft.replace(path)
        return True
    finally:
        draft.unlink(missing_ok=True)
