"""Hyper-parameters of all workers with the paper's values (StreamArena, appendix C.5).

Where the paper is silent the value is ours and marked so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from bench_lib.errors import BenchError, nearest
from bench_lib.speech.windows import MIN_RMS, WINDOW_S


@dataclass(frozen=True)
class Decoding:
    """How one worker's model is asked.

    `model` names another message model than the one that serves the method (as in
    `bench_lib.chat.open`); empty is the shared one, as in the paper's runs. `thinking` is sent to
    endpoints that can switch it.
    """

    temperature: float
    max_tokens: int
    thinking: bool = True
    model: str = ""
    top_p: float = 0.95


DECODING: Mapping[str, Decoding] = {
    "front": Decoding(0.3, 256, thinking=False),
    "fallback": Decoding(0.4, 1536),
    "monitor": Decoding(0.2, 512),
    "router": Decoding(0.2, 2048),
    "search": Decoding(0.2, 4096),
    "recall": Decoding(0.2, 2048),
    "distil": Decoding(0.2, 512),
    "verify": Decoding(0.2, 512),  # the paper names no limit for the visual pass
    "memory_writer": Decoding(0.2, 2560),
    "summary": Decoding(0.2, 1024),  # nor for summaries of macro and super events
}
"""By worker. The paper's runs serve all of them from one endpoint, the front without thinking."""
PARTS = ("memory_writer", "recall", "search", "monitor")
"""Workers that can be switched off for an ablation."""


@dataclass(kw_only=True)
class Settings:
    """See the module; each worker's module says which of these are its own.

    Args:
        max_side: Longest side of a frame in pixels.
        jpeg_quality: Quality at which frames are kept and shown.
        ring_s: Seconds of frames in the ring buffer.
        audio_window_s, audio_min_rms, audio_most: Audio windows, the level below which they are not
            transcribed, and how many observations are kept.
        log_characters: Most characters of the dialogue; the oldest turns go first.
        front_frames, front_macros, front_facts: What the front is shown of the present, of macro
            summaries, and of current facts (the last is ours).
        fallback_frames, fallback_current, fallback_turns, fallback_recalled: Frames at the query,
            newest frames, dialogue turns and recalled frames of the fallback answer.
        monitor_every_s, monitor_frames, monitor_confidence: Rhythm, frames of a check, and the
            confidence from which it fires.
        monitors: Most active ones. monitor_gap_s: least time between alerts of a repeating one.
        monitor_records, monitor_summaries: Frames and texts kept of its alerts.
        router_rounds, router_frames, router_turns: Limits of a mission.
        search_rounds, search_frames, search_results, search_similarity, crop_side: Limits of a
            search task; results are kept from this similarity on; longest side of a crop.
        recall_rounds, recall_frames, recall_results, verify_frames: Limits of a recall task;
            results per ranked tool; frames of the last visual pass.
        writer_every_s, writer_frames, writer_window_s: Rhythm and window of the memory writer (the
            class default of its rhythm is 5 s, the paper's runs use 4 s).
        micro_ticks, micro_s, macro_micros, macro_s, super_macros, super_s: Limits of events.
        same_entity: String similarity from which names may mean one entity. entity_recent_s: how
            long an entity stays a candidate (ours).
        store_frames, store_lookback_s, store_bits: Key frames kept; how far back and up to which
            Hamming distance of 64-bit difference hashes a frame counts as known.
        store_change: Change of a cell's mean grey from which a frame is kept although its hash is
            known (ours): a score of a few pixels changes no hash.
        without: Workers that are switched off: memory_writer, recall, search, monitor.
        clock: `lockstep` (deterministic) or `realtime`. speed: video seconds per second then.
        latency_s: By worker, seconds of video that its calls take in lockstep, or a list to draw
            from; `default` for all others. `listen` is speech recognition.
        decoding: By worker, fields of `Decoding` that differ from the paper's.
        calls_at_once: Calls under way per endpoint; the front has places of its own (ours).
        call_timeout_s: Longest call (ours).
        prompts: Prompt set, or a folder of one's own with the same files.
    """

    max_side: int = 720
    jpeg_quality: int = 75
    ring_s: float = 60.0
    audio_window_s: float = WINDOW_S
    audio_min_rms: float = MIN_RMS
    audio_most: int = 300
    log_characters: int = 100_000
    front_frames: int = 12
    front_macros: int = 2
    front_facts: int = 20
    fallback_frames: int = 12
    fallback_current: int = 2
    fallback_turns: int = 16
    fallback_recalled: int = 4
    monitor_every_s: float = 2.0
    monitor_frames: int = 4
    monitor_confidence: float = 0.6
    monitors: int = 8
    monitor_gap_s: float = 3.0
    monitor_records: int = 60
    monitor_summaries: int = 200
    router_rounds: int = 4
    router_frames: int = 8
    router_turns: int = 16
    search_rounds: int = 3
    search_frames: int = 30
    search_results: int = 10
    search_similarity: float = 0.6
    crop_side: int = 720
    recall_rounds: int = 4
    recall_frames: int = 4
    recall_results: int = 5
    verify_frames: int = 8
    writer_every_s: float = 4.0
    writer_frames: int = 30
    writer_window_s: float = 15.0
    micro_ticks: int = 6
    micro_s: float = 30.0
    macro_micros: int = 5
    macro_s: float = 180.0
    super_macros: int = 4
    super_s: float = 900.0
    same_entity: float = 0.85
    entity_recent_s: float = 120.0
    store_frames: int = 4000
    store_lookback_s: float = 8.0
    store_bits: int = 6
    store_change: float = 24.0
    without: tuple[str, ...] = ()
    clock: Literal["lockstep", "realtime"] = "lockstep"
    speed: float = 1.0
    latency_s: Mapping[str, Any] = field(default_factory=dict)
    decoding: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    calls_at_once: int = 16
    call_timeout_s: float = 600.0
    prompts: str = "streammind"

    def has(self, worker: str) -> bool:
        """Whether a worker is switched on."""
        return worker not in self.without

    def of(self, worker: str) -> Decoding:
        """The decoding of a worker."""
        return replace(DECODING[worker], **self.decoding.get(worker, {}))

    def check(self) -> None:
        """Raise BenchError for a name or value that cannot be meant."""
        known = {f.name for f in fields(Decoding)}
        for worker, changes in self.decoding.items():
            if worker not in DECODING:
                raise BenchError(f"decoding: no worker {worker!r}; {nearest(worker, DECODING)}")
            for name in changes:
                if name not in known:
                    raise BenchError(f"decoding of {worker}: {name!r}; {nearest(name, known)}")
        for worker in self.latency_s:
            if worker not in (known_to := (*DECODING, "listen", "default")):
                raise BenchError(f"latency_s: no worker {worker!r}; {nearest(worker, known_to)}")
        for part in self.without:
            if part not in PARTS:
                raise BenchError(f"without: no part {part!r} here; {nearest(part, PARTS)}")
        if self.clock not in ("lockstep", "realtime"):
            raise BenchError(f"clock must be lockstep or realtime, not {self.clock!r}")
        positive = (
            "ring_s",
            "monitor_every_s",
            "writer_every_s",
            "speed",
            "micro_ticks",
            "monitors",
        )
        for name in positive:
            if not getattr(self, name) > 0:
                raise BenchError(f"{name} must be positive, not {getattr(self, name)!r}")


def settings_of(owner: Any) -> Settings:
    """The settings among the fields of an object that has them all."""
    return Settings(**{f.name: getattr(owner, f.name) for f in fields(Settings)})
