"""Messages as the JSON body of an OpenAI-style chat request."""

from __future__ import annotations

import os
import threading
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any

from bench_lib.chat.reply_stream import mended
from bench_lib.exchange import Generation
from bench_lib.messages import media
from bench_lib.messages.chat import Contract, Frames, Message, Part, Sound, Text
from bench_lib.messages.settings import EndpointSettings
from bench_lib.video.stream import Frame, Size

KEPT_BYTES = 256 * 2**20
"""Encoded media kept for the next request: consecutive probes of a session share most frames."""


class Wire:
    """Builds request bodies; encodes each frame once, as long as it is kept."""

    def __init__(self, settings: EndpointSettings) -> None:
        self.settings = settings
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def body(
        self,
        model: str,
        messages: Sequence[Message],
        contract: Contract,
        generation: Generation,
        held: Container[str] = (),
    ) -> dict[str, Any]:
        """The request, all but the switch that asks for a stream; `held` items go by name alone."""
        s = self.settings
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": m.role, "content": self._content(m, held)} for m in messages],
            s.limit_field: generation.max_new_tokens + s.reasoning_tokens,
        }
        if s.sampling:
            body |= {
                "temperature": generation.temperature,
                "top_p": generation.top_p,
                "seed": generation.seed,
            }
            if generation.repetition_penalty != 1.0:
                body["repetition_penalty"] = generation.repetition_penalty
        if s.reasoning_effort:
            body["reasoning_effort"] = s.reasoning_effort
        if s.thinking:
            body["chat_template_kwargs"] = {"enable_thinking": s.thinking == "on"}
        if s.send_contract:
            body["metadata"] = {"contract": contract.name}
        if s.logprobs and generation.keep_logits:
            body |= {"logprobs": True, "top_logprobs": s.logprobs}
        if contract.schema and s.structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif contract.schema and s.structured == "json_schema":
            schema = {"name": contract.name, "schema": dict(contract.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body | dict(s.extra)

    def _content(self, message: Message, held: Container[str]) -> str | list[dict[str, Any]]:
        if all(isinstance(part, Text) for part in message.parts):
            # Some chat templates take no list of parts in a system turn.
            return mended("\n".join(p.text for p in message.parts if isinstance(p, Text)))
        return [item for part in message.parts for item in self._items(part, held)]

    def _items(self, part: Part, held: Container[str]) -> list[dict[str, Any]]:
        if isinstance(part, Text):
            return [{"type": "text", "text": mended(part.text)}]
        if isinstance(part, Sound):
            data = b64encode(media.wav(part.samples)).decode()
            item: dict[str, Any] = {
                "type": "input_audio",
                "input_audio": {"data": data, "format": "wav"},
            }
            return [self._named(item, media.sound_digest(part))]
        if part.video and self.settings.video != "images":
            return [self._video(part, held)]
        return [self._image(part, index, held) for index in range(len(part.frames))]

    def _image(self, part: Frames, index: int, held: Container[str]) -> dict[str, Any]:
        form = self.settings.image_format
        name, encode = self._picture(part.frames[index], part.size, form)
        if name in held:
            return self._named({"type": "image_url", "image_url": None}, name)
        image = {"url": self._url(name, f"image/{form}", encode)}
        if self.settings.media_resolution:
            image["detail"] = self.settings.media_resolution
        return self._named({"type": "image_url", "image_url": image}, name)

    def _picture(
        self, frame: Frame, size: Size | None, form: str
    ) -> tuple[str, Callable[[], bytes]]:
        """A picture's name by content, and what encodes it."""
        quality = self.settings.quality
        name = media.short_digest(media.digest(frame), size, form, quality)
        return name, lambda: media.image(frame, size, form, quality)

    def _video(self, part: Frames, held: Container[str]) -> dict[str, Any]:
        pictures = [self._picture(frame, part.size, "jpeg") for frame in part.frames]
        times = [round(f.t_s - part.frames[0].t_s, 6) for f in part.frames]
        name = media.short_digest([name for name, _ in pictures], times, self.settings.video)
        if name in held:
            return self._named({"type": "video_url", "video_url": None}, name)
        if self.settings.video == "mp4":
            url = self._url(name, "video/mp4", lambda: media.mp4(part.frames, part.size))
        else:
            url = "data:video/jpeg;base64," + ",".join(self._base64(*each) for each in pictures)
        return self._named({"type": "video_url", "video_url": {"url": url}}, name)

    def _named(self, item: dict[str, Any], name: str) -> dict[str, Any]:
        ids = self.settings.media_ids or self.settings.media == "once"
        return item | {"uuid": name} if ids else item

    def _url(self, name: str, kind: str, encode: Callable[[], bytes]) -> str:
        """A data URL, or a reference to a file that is written once."""
        if self.settings.media != "file":
            return f"data:{kind};base64,{self._base64(name, encode)}"
        folder = Path(self.settings.media_folder).expanduser().resolve()
        path = folder / f"{name}.{kind.partition('/')[2]}"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
            draft.write_bytes(encode())
            draft.replace(path)
        return path.as_uri()

    def _base64(self, name: str, encode: Callable[[], bytes]) -> str:
        """Encoded media, kept while there is room, the longest unused going first."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        text = b64encode(encode()).decode()
        with self._lock:
            if name not in self._kept:
                self._kept[name] = text
                self._kept_bytes += len(text)
            while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1])
        return text


def names(body: dict[str, Any]) -> set[str]:
    """The names of the frames and videos of a request, as far as they have any."""
    parts = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
    items = [item for part in parts for item in part]
    return {i["uuid"] for i in items if i["type"] in ("image_url", "video_url") and "uuid" in i}
