"""What a user can set of an endpoint. No field holds a secret: a key is named, not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from bench_lib.errors import BenchError, nearest
from bench_lib.messages.keys import named
from bench_lib.redact import secret_at

Structured = Literal["none", "json_object", "json_schema"]
Media = Literal["data", "file", "once"]
Video = Literal["images", "jpeg", "mp4"]
ImageFormat = Literal["jpeg", "png"]
LimitField = Literal["max_tokens", "max_completion_tokens"]
Switch = Literal["", "on", "off"]
Finish = Literal["required", "assumed"]


@dataclass(frozen=True)
class EndpointSettings:
    """Settings of an OpenAI-compatible server; those before `media` shape replies.

    Replies:
        revision: Weights or snapshot behind the model name. Where given, it replaces the address in
            the model's id, so that kept replies serve again from another host or port.
        reasoning_effort: Sent as it is; empty leaves it to the server.
        thinking: `on` or `off` sets `enable_thinking` of the server's chat template (vLLM).
        reasoning_tokens: Added to the token limit of a reply, for models that think within it.
        media_resolution: `detail` of each image part; empty leaves it to the server.
        structured: How the server takes a contract's JSON schema.
        sampling: Whether temperature, top-p and seed are sent; some reasoning models refuse them.
        limit_field: Name of the token limit.
        send_contract: Send the contract's name as request metadata.
        logprobs: Log-probabilities of the first token to ask for, where logits are kept.
        extra: Merged into the body of each request: what else a server understands, no secrets.
        embedding_model: Model for `embed`; empty means lexical vectors made here.
        finish: `assumed` takes a reply without a finish reason for whole, as far as its stream or
            body came to a regular end; for servers that never give one. Reports say so.

    Media:
        video: How a video part is sent: as separate images, as one part of joined JPEG frames
            (vLLM's `data:video/jpeg`), or as an MP4 file with the frames' own times.
        image_format, quality: Encoding of frames.
        media: `data` URLs inside the request; `file` references to files written once, named by
            content, in `media_folder`, which the server must be allowed to read; or `once`: the
            bytes in the first request that shows an item, later its `uuid` alone (vLLM keeps them
            in its cache; where it has let one go, the request is sent again with its bytes).
        media_ids: Send a content digest as each item's `uuid` (vLLM reuses encoded media by it).

    Transport:
        embedding_url: Address of the server of `embedding_model`, where it is another one (vLLM
            serves one model each).
        key_env: Environment variable that holds the key. Nothing is sent unless it is named, so no
            key reaches a server that was not meant to have it.
        concurrency: Requests under way at once, at each address. 0: as many as the server's cache
            holds, found out before a run; until then, and where a server does not tell, 8.
        timeout_s: Longest silence of the server. deadline_s: longest time of one request.
        retries, backoff_s, max_wait_s: Further tries after transport failures; the first wait,
            doubled each time with jitter; the longest single wait, also for `Retry-After`. By
            default a server may be away for two to three minutes, which a restart of vLLM takes.
        stream: Ask for a streamed reply; without it the first token's time is that of the last.

    Limits:
        max_calls, max_cost: Requests and money to spend at most in this process; 0 is no limit.
        price_in, price_out: Price of a million prompt and completion tokens, in the unit of
            `max_cost`.
        context_tokens: Context length, where the server does not tell.
    """

    revision: str = ""
    reasoning_effort: str = ""
    thinking: Switch = ""
    reasoning_tokens: int = 0
    media_resolution: str = ""
    structured: Structured = "none"
    sampling: bool = True
    limit_field: LimitField = "max_tokens"
    send_contract: bool = False
    logprobs: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    embedding_model: str = ""
    finish: Finish = "required"

    video: Video = "images"
    image_format: ImageFormat = "jpeg"
    quality: int = 90
    media: Media = "data"
    media_folder: str = ""
    media_ids: bool = False

    embedding_url: str = ""
    key_env: str = ""
    concurrency: int = 0
    timeout_s: float = 120.0
    deadline_s: float = 900.0
    retries: int = 10
    backoff_s: float = 0.5
    max_wait_s: float = 60.0
    stream: bool = True

    max_calls: int = 0
    max_cost: float = 0.0
    price_in: float = 0.0
    price_out: float = 0.0
    context_tokens: int = 0

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise BenchError(
                    f"endpoint setting {name}={value!r}; {nearest(str(value), get_args(allowed))}"
                )
        if self.concurrency < 0:
            raise BenchError(
                f"endpoint setting concurrency must not be negative: {self.concurrency}"
            )
        for name in ("timeout_s", "deadline_s", "max_wait_s", "quality"):
            if getattr(self, name) <= 0:
                raise BenchError(
                    f"endpoint setting {name} must be above 0, not {getattr(self, name)}"
                )
        if self.media == "file" and not self.media_folder:
            raise BenchError(
                "endpoint setting media='file' needs media_folder, which the server reads"
            )
        named(self.key_env)
        where = secret_at(asdict(self))
        if where:
            name = where.partition(".")[0]
            raise BenchError(f"endpoint setting {name} holds a key; name its variable with key_env")
        if self.max_cost and not (self.price_in or self.price_out):
            raise BenchError(
                "endpoint setting max_cost needs price_in and price_out, per million tokens"
            )

    def shaping(self) -> dict[str, Any]:
        """The settings on which a reply depends, for cache keys and manifests.

        Those that came later count only where they differ from their default.
        """
        record = asdict(self)
        return {name: record[name] for name in SHAPING if LATER.get(name, ...) != record[name]}


_NAMES = tuple(f.name for f in fields(EndpointSettings))
SHAPING = _NAMES[: _NAMES.index("media")]
"""Settings on which a reply depends; the others say how a server is reached, and limits."""
LATER: Mapping[str, Any] = {"finish": "required"}
"""Defaults of those that replies and runs made before do not know."""
CHOICES: dict[str, Any] = {
    "structured": Structured,
    "media": Media,
    "video": Video,
    "image_format": ImageFormat,
    "limit_field": LimitField,
    "thinking": Switch,
    "finish": Finish,
}
