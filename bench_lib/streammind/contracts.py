"""What each worker may reply: pydantic models, one repair, that of `messages.contract.checked`.

A reply that breaks its contract after one repair raises ValueError, which the caller's backend
answers with one re-ask; raw rejected replies stay in the log. Frame ids that were not shown are
taken out of a reply and counted: they are invented, not remembered.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench_lib.measure import count
from bench_lib.messages.chat import Contract
from bench_lib.replies.clean import without_reasoning

Answer = str | dict[str, Any]
"""An answer in words, or the object that the request asked for."""


class Reply(BaseModel):
    """Base: further keys are passed over, as models like to explain themselves."""

    model_config = ConfigDict(extra="ignore")


class Brief(Reply):
    """What the front asks the router to find out."""

    goal: str = Field(min_length=1)
    needs: list[str] = []
    constraints: str = ""


class Wish(Reply):
    """A condition to be watched."""

    condition: str = Field(min_length=1)
    mode: Literal["once", "repeat"] = "once"
    message_hint: str = ""


class FrontReply(Reply):
    """One of four ways."""

    action: Literal["answer", "delegate", "monitor", "cancel"]
    answer: Answer | None = None
    brief: Brief | None = None
    monitor: Wish | None = None
    cancel_ids: list[str] = []

    @model_validator(mode="after")
    def _whole(self) -> FrontReply:
        needed = {
            "answer": self.answer not in (None, ""),
            "delegate": self.brief is not None,
            "monitor": self.monitor is not None,
            "cancel": bool(self.cancel_ids),
        }
        if not needed[self.action]:
            key = {"delegate": "brief", "cancel": "cancel_ids"}.get(self.action, self.action)
            raise ValueError(f"action {self.action!r} needs {key!r}")
        return self


class MonitorReply(Reply):
    """The verdict of one check."""

    satisfied: bool
    confidence: float = Field(ge=0, le=1)
    evidence: str = ""
    message: str = ""


class Task(Reply):
    """A subtask of a mission; `anchor` is a frame id, or `current` for the newest frame."""

    kind: Literal["recall", "search"]
    instruction: str = Field(min_length=1)
    anchor: str = "current"


class RouterReply(Reply):
    """Either the final answer or tasks."""

    answer: Answer | None = None
    tasks: list[Task] = []

    @model_validator(mode="after")
    def _one(self) -> RouterReply:
        if bool(self.answer) == bool(self.tasks):
            raise ValueError("exactly one of 'answer' and 'tasks' is needed")
        return self


class SearchCall(Reply):
    """One use of a search tool; `box` is [x1, y1, x2, y2] on a grid of 1000 x 1000."""

    tool: Literal["text_search", "image_search", "crop_search"]
    query: str = ""
    frame: str = "anchor"
    box: tuple[float, float, float, float] | None = None

    @model_validator(mode="after")
    def _usable(self) -> SearchCall:
        if self.tool == "text_search" and not self.query.strip():
            raise ValueError("text_search needs a query")
        return self


class SearchReply(Reply):
    """Either calls or the report."""

    calls: list[SearchCall] = []
    report: str = ""
    sources: list[str] = []

    @model_validator(mode="after")
    def _one(self) -> SearchReply:
        if bool(self.calls) == bool(self.report):
            raise ValueError("exactly one of 'calls' and 'report' is needed")
        return self


class RecallCall(Reply):
    """One use of a recall tool; see `recall_tools`."""

    tool: Literal[
        "time_window", "find_entity", "search_events", "events_of", "frames_of", "traverse"
    ]
    start: str | float = 0.0
    end: str | float | None = None
    text: str = ""
    entity: str = ""
    hops: int = Field(default=1, ge=1, le=6)
    labels: list[str] = []
    k: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _usable(self) -> RecallCall:
        if self.tool in ("find_entity", "search_events") and not self.text.strip():
            raise ValueError(f"{self.tool} needs 'text'")
        if self.tool in ("events_of", "frames_of", "traverse") and not self.entity:
            raise ValueError(f"{self.tool} needs 'entity', an id")
        return self


class RecallReply(Reply):
    """Either calls or the report, with the ids of the frames that show the target."""

    calls: list[RecallCall] = []
    report: str = ""
    frames: list[str] = []

    @model_validator(mode="after")
    def _one(self) -> RecallReply:
        if bool(self.calls) == bool(self.report):
            raise ValueError("exactly one of 'calls' and 'report' is needed")
        return self


class DistilReply(Reply):
    """One to three sentences on what a result says about the task."""

    text: str = Field(min_length=1)


class VerifyReply(Reply):
    """The ids of the frames that show the target."""

    frames: list[str]


class KeyFrame(Reply):
    """A frame worth keeping; `text` marks one that is kept for what can be read on it."""

    id: str
    text: bool = False


class SeenEntity(Reply):
    """A person, thing, place or text as the writer saw it."""

    name: str = Field(min_length=1)
    type: Literal["person", "object", "place", "group", "text", "other"] = "other"
    aliases: list[str] = []
    attributes: dict[str, str] = {}
    frames: list[str] = []


class SeenRelation(Reply):
    """An edge between two names."""

    src: str = Field(min_length=1)
    label: str = Field(min_length=1)
    dst: str = Field(min_length=1)


class WriterReply(Reply):
    """One tick: whether a new event begins, what is new, and what was seen."""

    boundary: bool = False
    text: str = ""
    key_frames: list[KeyFrame] = []
    entities: list[SeenEntity] = []
    relations: list[SeenRelation] = []
    facts: list[str] = []


class SummaryReply(Reply):
    """The text of a macro or super event."""

    summary: str = Field(min_length=1)


def contract(
    name: str, model: type[Reply], check: Callable[[Any], None] = lambda reply: None
) -> Contract:
    """The contract of a model; `check` raises ValueError for what the model alone cannot see."""

    def parse(text: str) -> Any:
        try:
            reply = model.model_validate(json_object(text))
        except ValidationError as error:
            raise ValueError("; ".join(_told(e) for e in error.errors()[:4])) from None
        check(reply)
        return reply

    return Contract(name, parse, model.model_json_schema())


def _told(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    what = str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {what}" if where else what


def json_object(text: str) -> dict[str, Any]:
    """The JSON object in a reply, mended once where it is damaged; ValueError where none is."""
    body = without_reasoning(text)[0]
    decoder = json.JSONDecoder(strict=False)
    starts = [match.start() for match in re.finditer(r"\{", body)][:20]
    for start in starts[:1]:
        try:
            found = decoder.raw_decode(body, start)[0]
        except (ValueError, RecursionError):
            break
        return dict(found)
    for start in starts:
        try:
            found = json.loads(mended(body[start:]), strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and found:
            count("contract_repairs")
            return found
    raise ValueError("it holds no JSON object")


def mended(text: str) -> str:
    """A damaged object as JSON: quotes, Python's literals, stray commas, a missing end."""
    text = text.replace("“", '"').replace("”", '"').strip().removesuffix("```").strip()
    try:
        return json.dumps(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        pass
    out, closing, inside, at = [], [], False, 0
    while at < len(text):
        sign = text[at]
        if inside:
            if sign == "\\":
                out.append(text[at : at + 2])
                at += 2
                continue
            inside = sign != '"'
        elif sign == '"':
            inside = True
        elif sign in "{[":
            closing.append("}" if sign == "{" else "]")
        elif sign in "}]":
            if closing and closing[-1] == sign:
                closing.pop()
            if not closing:
                out.append(sign)
                break
        out.append(sign)
        at += 1
    whole = "".join(out) + ('"' if inside else "")
    whole = re.sub(r"[,:]\s*$", "", whole) + "".join(reversed(closing))
    whole = re.sub(r"\b(True|False|None)\b", lambda m: _LITERALS[m[1]], whole)
    return re.sub(r",\s*([}\]])", r"\1", whole)


_LITERALS = {"True": "true", "False": "false", "None": "null"}
