"""endpoint: any server with OpenAI's `/audio/transcriptions`, vLLM among them.

`endpoint:MODEL@ADDRESS`, such as `endpoint:Qwen/Qwen3-ASR-1.7B@http://localhost:8000/v1`, the model
that StreamArena's paper falls back to (Eq. 16). A key is taken from `ASR_API_KEY` where that is
set.
"""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_lib.chat.reply_stream import mended
from bench_lib.chat.transport import Transport
from bench_lib.errors import BenchError
from bench_lib.messages.settings import EndpointSettings
from bench_lib.speech import Recogniser
from bench_lib.video.stream import SAMPLE_RATE

KEY = "ASR_API_KEY"


class _Server(Transport):
    def hear(self, model: str, sound: bytes) -> str:
        """The text of one WAV file; raises TransportError or RequestRefused."""

        def once() -> Any:
            with self._response(
                "POST",
                "/audio/transcriptions",
                data={"model": model, "response_format": "json", "temperature": "0"},
                files={"file": ("window.wav", sound, "audio/wav")},
            ) as response:
                return self._json(response)

        reply = self.persist(once)
        text = reply.get("text") if isinstance(reply, dict) else None
        if not isinstance(text, str):
            raise BenchError(f"{self.url}: the reply holds no text: {str(reply)[:200]!r}")
        return mended(text)


def load(where: str, home: Path) -> Recogniser:
    """The model of a server; see the module and `speech.recogniser`."""
    model, _, url = where.rpartition("@")
    if not model or not url.startswith(("http://", "https://")):
        raise BenchError(
            f"endpoint:{where}: give the model and the address, as endpoint:MODEL@http://HOST:PORT/v1"
        )
    key = KEY if os.environ.get(KEY) else ""
    server = _Server(url.rstrip("/"), EndpointSettings(key_env=key))
    # The address is no part of it: kept transcripts serve again from another host.
    return Recogniser(f"endpoint {model}", lambda samples: server.hear(model, wav(samples)))


def wav(samples: NDArray[np.float32]) -> bytes:
    """Samples in [-1, 1) as a WAV file of 16 bits."""
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        scaled = np.clip(np.round(samples * 32_768), -32_768, 32_767)
        file.writeframes(scaled.astype("<i2").tobytes())
    return held.getvalue()
