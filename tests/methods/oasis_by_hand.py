"""Drives OASIS by hand, with scripted models and with one that joins notes."""

from __future__ import annotations

import hashlib
import json

import numpy as np
from by_hand import chat, script, session

from bench_lib import methods
from bench_lib.exchange import Query, Reply
from bench_lib.messages.chat import Chat, ChatReply
from bench_lib.methods.oasis import Oasis

SMALL = {"now_frames": 2, "buffer_frames": 4, "frames_per_node": 2}


def call(text: str) -> str:
    """A reply that searches."""
    body = json.dumps({"name": "search_memory", "arguments": {"text_input": text}})
    return f"Let me look.\n<tool_call>\n{body}\n</tool_call>"


def oasis(*replies: str | ChatReply, **args) -> Oasis:
    method = methods.load("oasis", **{**SMALL, **args}).attach(chat(*replies))
    method.reset("t", 7)
    return method


def sent(method: Oasis) -> list[list[str]]:
    """The last user turns of all requests so far, line by line."""
    return [script(list(messages)) for messages, _, _ in method.served.asked]


def vector(text: str) -> np.ndarray:
    """A unit vector drawn from a digest of the text, as for the stored results of the release."""
    digest = hashlib.blake2b(text.encode(), digest_size=4).digest()
    drawn = np.random.default_rng(int.from_bytes(digest, "big")).normal(size=6)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


class Joining(Chat):
    """Numbers the events, joins notes as `(left right)`, embeds by digest, and keeps nothing."""

    id = "joining"

    def __init__(self) -> None:
        self.events = 0

    def complete(self, messages, contract, generation):
        if contract.name == "merge":
            lines = [x for x in messages[-1].parts[0].text.split("\n") if x.startswith("[")]
            return ChatReply(said := f"({' '.join(x.split('] ')[1] for x in lines)})", value=said)
        self.events += 1
        return ChatReply(said := f"e{self.events - 1}", value=said)

    def embed(self, texts):
        return np.stack([vector(text) for text in texts])


def remembering(*replies: str | ChatReply, **args) -> Oasis:
    """Two sessions of one event each in memory, three frames of a third in view."""
    method = oasis("The red cup stands on the shelf.", "A man opens the window.", **args)
    session(method, 0, 4)
    session(method, 1, 4)
    session(method, 2, 3, end=False)
    method.served = chat(*replies)
    return method


def turned(**args) -> Oasis:
    """A memory of two past turns, one of them about a cup."""
    method = remembering("You asked about a cup.", "You asked about a cup and a window.", **args)
    for text, said in (("Where is my cup?", "On the shelf."), ("Who came?", "A man.")):
        query = Query(text, 2, 2.0)
        method.commit(query, Reply(said, 0.0, 0.0, 0.0))
    return method
