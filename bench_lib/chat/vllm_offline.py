"""vLLM in this process: no server, no network, frames handed over without an image encoding.

Requests of many threads are served in batches: whoever holds the engine takes along all that wait.
Prompts are rendered by the model's own chat template; a video goes in as an array with the instants
of its frames, so nothing is sampled a second time. Media carry content digests as ids, by which the
engine reuses what it has encoded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from bench_lib.chat.reply_stream import STOPS
from bench_lib.errors import BenchError
from bench_lib.exchange import Generation
from bench_lib.measure import count
from bench_lib.messages import media
from bench_lib.messages.chat import (
    Chat,
    ChatError,
    ChatReply,
    Contract,
    Frames,
    Message,
    Sound,
    Text,
)
from bench_lib.messages.contract import checked

TOP = 20
"""Log-probabilities of the first token that are kept where logits are."""


@dataclass
class Job:
    """One request and what became of it."""

    prompt: dict[str, Any]
    sampling: Any
    reply: ChatReply | None = None
    error: str = ""


@dataclass
class VllmChat(Chat):
    """A model in vLLM's offline engine.

    Args:
        model: Name or folder of a checkpoint.
        revision: Its revision.
        structured: Hold decoding to a contract's JSON schema.
        template: Further arguments of the chat template (`enable_thinking`, ...).
        engine: Further arguments of `vllm.LLM` (`max_model_len`, `tensor_parallel_size`, ...).

    Raises:
        BenchError: vLLM is not installed.
    """

    hears = False

    model: str
    revision: str = ""
    structured: bool = False
    template: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            import vllm
        except ImportError:
            raise BenchError(
                "vllm:MODEL needs vLLM in this environment: pip install 'bench-lib[vllm]'"
            ) from None
        self.id = f"{self.model}@{self.revision or 'vllm'}"
        self._vllm = vllm
        # Statistics give the first token's time.
        given = {"disable_log_stats": False, **self.engine}
        self._llm = vllm.LLM(self.model, revision=self.revision or None, **given)
        self._waiting: list[Job] = []
        self._guard, self._engine = threading.Lock(), threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `Chat.identity`: checkpoint, engine and version shape replies."""
        return {
            "id": self.id,
            "vllm": self._vllm.__version__,
            "structured": self.structured,
            "template": dict(self.template),
            "engine": dict(self.engine),
        }

    def complete(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        """See `Chat.complete`; raises ChatError with the engine's own words."""
        return checked(self._send, messages, contract, generation)

    def _send(
        self, messages: Sequence[Message], contract: Contract, generation: Generation
    ) -> ChatReply:
        job = Job(self.prompt(messages), self._sampling(contract, generation))
        with self._guard:
            self._waiting.append(job)
        with self._engine:
            if job.reply is None and not job.error:
                with self._guard:
                    batch, self._waiting = self._waiting, []
                self._serve(batch)
        if job.reply is None:
            raise ChatError(f"{self.id}: {job.error}")
        count("prompt_tokens", job.reply.usage["prompt_tokens"])
        count("completion_tokens", job.reply.usage["completion_tokens"])
        return job.reply

    def prompt(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Messages as the engine's prompt: text with placeholders, media in order, their ids."""
        turns: list[dict[str, Any]] = []
        data: dict[str, list[Any]] = {"image": [], "video": []}
        names: dict[str, list[str]] = {"image": [], "video": []}
        for message in messages:
            content: list[dict[str, str]] = []
            for part in message.parts:
                if isinstance(part, Text):
                    content.append({"type": "text", "text": part.text})
                elif isinstance(part, Sound):
                    raise ChatError(f"{self.id}: sound is not handed to vLLM")
                else:
                    kind = "video" if part.video else "image"
                    items = [_video(part)] if part.video else _images(part)
                    content += [{"type": kind}] * len(items)
                    data[kind] += [item for item, _ in items]
                    names[kind] += [name for _, name in items]
            turns.append({"role": message.role, "content": content})
        text = self._llm.get_tokenizer().apply_chat_template(
            turns, tokenize=False, add_generation_prompt=True, **self.template
        )
        built: dict[str, Any] = {"prompt": text}
        if data["image"] or data["video"]:
            built["multi_modal_data"] = {k: v for k, v in data.items() if v}
            built["multi_modal_uuids"] = {k: v for k, v in names.items() if v}
        return built

    def _sampling(self, contract: Contract, generation: Generation) -> Any:
        given: dict[str, Any] = {}
        if self.structured and contract.schema:
            from vllm.sampling_params import StructuredOutputsParams

            given["structured_outputs"] = StructuredOutputsParams(json=dict(contract.schema))
        return self._vllm.SamplingParams(
            max_tokens=generation.max_new_tokens,
            temperature=generation.temperature,
            top_p=generation.top_p,
            repetition_penalty=generation.repetition_penalty,
            seed=generation.seed,
            logprobs=TOP if generation.keep_logits else None,
            **given,
        )

    def _serve(self, batch: Sequence[Job]) -> None:
        begun = time.perf_counter()
        try:
            outputs = self._llm.generate(
                [job.prompt for job in batch], [job.sampling for job in batch], use_tqdm=False
            )
        except Exception as error:
            # Whatever the engine raises, each request must hear of it. One that does not fit fails
            # its whole batch, so each is then served alone.
            if len(batch) > 1:
                for job in batch:
                    self._serve([job])
            else:
                batch[0].error = str(error)
            return
        for job, output in zip(batch, outputs, strict=True):
            reason = output.outputs[0].finish_reason
            if reason in STOPS:
                job.reply = _reply(output, begun, time.perf_counter())
            else:
                job.error = f"the engine ended the reply with finish_reason {reason!r}"


def _reply(output: Any, begun: float, done: float) -> ChatReply:
    said = output.outputs[0]
    first_s = getattr(output.metrics, "first_token_latency", None)
    top = said.logprobs[0] if said.logprobs else None
    return ChatReply(
        text=said.text,
        stop=STOPS[said.finish_reason],
        ready_at=begun,
        first_token_at=done if first_s is None else min(done, begun + first_s),
        done_at=done,
        usage={
            "prompt_tokens": len(output.prompt_token_ids),
            "completion_tokens": len(said.token_ids),
            "cached_tokens": getattr(output, "num_cached_tokens", 0) or 0,
        },
        logits=None
        if top is None
        else np.array(sorted((p.logprob for p in top.values()), reverse=True), np.float32),
    )


def _images(part: Frames) -> list[tuple[Any, str]]:
    return [
        (Image.fromarray(f.pixels(part.size)), media.short_digest(media.digest(f), part.size))
        for f in part.frames
    ]


def _video(part: Frames) -> tuple[Any, str]:
    """Frames `[n, height, width, 3]` with the instants they stand for, and a content id."""
    times = [frame.t_s for frame in part.frames]
    gaps = np.diff(times)
    fps = 1 / float(np.median(gaps)) if len(gaps) else 1.0
    indices = [round(t * fps) for t in times]
    told = {
        "fps": fps,
        "total_num_frames": indices[-1] + 1,
        "duration": (indices[-1] + 1) / fps,
        "frames_indices": indices,
        "video_backend": "array",
        "do_sample_frames": False,
    }
    digests = [media.digest(frame) for frame in part.frames]
    pixels = np.stack([frame.pixels(part.size) for frame in part.frames])
    return (pixels, told), media.short_digest(digests, times, part.size)
