"""Replays stored replies: a folder that `CachedChat` wrote, or a list."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_lib.chat.cache import fingerprint, read_entry, request_parts, unpack
from bench_lib.errors import BenchError, nearest
from bench_lib.exchange import Generation
from bench_lib.messages.chat import Chat, ChatError, ChatReply, Contract, Message
from bench_lib.messages.contract import checked
from bench_lib.paths import short


class RecordedChat(Chat):
    """Answers each request as it was once answered, with the counts and durations of then.

    Args:
        folder: A reply cache.
        model: Id of the model whose replies are meant, where the folder holds those of several.

    Raises:
        BenchError: the folder holds no replies, or those of several models and none was chosen.
    """

    def __init__(self, folder: Path | str, model: str = "") -> None:
        self.folder = Path(folder).expanduser()
        entries = [(p, read_entry(p)) for p in sorted(self.folder.glob("??/*.json"))]
        whole = [(p, e) for p, e in entries if e is not None and "reply" in e]
        identities = {fingerprint(e["identity"]): e["identity"] for _, e in whole}
        chosen = {k: i for k, i in identities.items() if not model or i["id"] == model}
        if len(chosen) != 1:
            known = nearest(model, {i["id"] for i in identities.values()})
            several = "of several models or settings" if len(chosen) > 1 else "of that model"
            unread = sum(e is None and not p.name.endswith(".rejected.json") for p, e in entries)
            left_out = f" ({unread} more may be cut or are damaged)" if unread else ""
            raise BenchError(
                f"{short(self.folder)} must hold replies of one model; it holds {len(whole)} "
                f"replies{left_out}, {len(chosen)} times {several}; {known}"
            )
        [(key, self._identity)] = chosen.items()
        self.id = self._identity["id"]
        self._parts = {
            fingerprint(e["parts"]): (p, e["parts"])
            for p, e in whole
            if fingerprint(e["identity"]) == key
        }

    @property
    def identity(self) -> Mapping[str, Any]:
        """The identity of the model that was recorded."""
        return self._identity

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """The stored reply; ChatError that says what differs where there is none."""
        wanted = request_parts(messages, contract, generation)
        path, _ = self._parts.get(fingerprint(wanted), (None, None))
        if path is None:
            raise ChatError(self._miss(wanted))
        entry = read_entry(path)
        if entry is None:
            raise ChatError(f"the recorded reply {short(path)} is damaged or gone")
        try:
            return unpack(entry["reply"], contract)
        except ValueError as error:
            raise ChatError(
                f"the recorded reply {short(path)} breaks its contract: {error}"
            ) from None

    def _miss(self, wanted: Mapping[str, str]) -> str:
        differences = (
            [name for name in wanted if parts.get(name) != wanted[name]]
            for _, parts in self._parts.values()
        )
        fewest = min(differences, key=len)
        return (
            f"no recorded reply in {short(self.folder)} for this request; the nearest of "
            f"{len(self._parts)} differs in: {', '.join(fewest)}"
        )


class ScriptedChat(Chat):
    """Gives the listed replies in order, whatever is asked, and keeps what was asked.

    A `ChatError` in the list is raised. `asked` holds one (messages, contract, generation) per
    request; a broken reply is answered by the next one, as with a real model.
    """

    def __init__(
        self, replies: Sequence[str | ChatReply | ChatError], id: str = "scripted"
    ) -> None:
        self.id = id
        self.asked: list[tuple[tuple[Message, ...], Contract, Generation]] = []
        self._replies = list(replies)
        self._lock = threading.Lock()

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """The next reply; ChatError when the list is used up."""
        return checked(self._next, messages, contract, generation)

    def _next(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        with self._lock:
            self.asked.append((tuple(messages), contract, generation))
            if len(self.asked) > len(self._replies):
                raise ChatError(f"all {len(self._replies)} scripted replies are used up")
            reply = self._replies[len(self.asked) - 1]
        if isinstance(reply, ChatError):
            raise reply
        return ChatReply(reply) if isinstance(reply, str) else reply
