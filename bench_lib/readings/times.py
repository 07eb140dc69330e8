"""What a run's answers and sessions took, and what follows from it.

As APM-Bench defines them (its section on efficiency): the real-time factor is all processing from
the prefix's first frame to the first token over the prefix's seconds; the first token's wait begins
at the last memory update that the answer needs where input streams, else at the prefix's first
frame; the full response is the time from a request to its complete reply. No decoding of video in
any of them. Runs made before ends and starts of sessions and notes were timed have no value where
those belong.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from bench_lib.measure import MEMORY
from bench_lib.readings.material import TIMINGS, Material

KINDS = (*MEMORY, "preparation", "generation")
"""All kinds of work, in the order in which a stream meets them."""


def derived(material: Material) -> pd.DataFrame:
    """Timings of the answered asks with what follows from them; ratios have no unit.

    `memory_s` is all that made the memory, `rest_s` what follows the first token. `_paper` columns
    and `rtf` are those of APM-Bench; `rtf_stream` is the memory's work over the video.
    """
    frame = material.answers[material.answers["ttft_prep_s"].notna()].copy()
    for name in TIMINGS:
        frame[name] = frame[name].astype(float)
    prefix = frame["prefix_s"].where(frame["prefix_s"] > 0)
    frame["memory_s"] = frame[[f"{kind}_s" for kind in MEMORY]].sum(axis=1, skipna=False)
    frame["rest_s"] = frame["total_s"] - frame["ttft_prep_s"]
    streams = material.facts.get("input_class") == "incremental"
    frame["ttft_paper_s"] = frame["ttft_prep_s"] + (0.0 if streams else frame["memory_s"])
    frame["full_paper_s"] = frame["generation_s"]
    frame["rtf"] = (frame["memory_s"] + frame["ttft_prep_s"]) / prefix
    frame["rtf_stream"] = frame["memory_s"] / prefix
    frame["decode_rate"] = frame["decode_s"] / prefix
    return frame


def untimed(material: Material) -> int:
    """Asks that were answered before all work was timed."""
    return int(derived(material)["memory_s"].isna().sum())


def spent(material: Material) -> pd.DataFrame:
    """Seconds of work by kind: once for the stream, and on branches; NaN where it was not timed."""
    stream: dict[str, Any] = dict.fromkeys(KINDS, 0.0)
    branches: dict[str, Any] = dict.fromkeys(KINDS, 0.0)
    unknown = float("nan")
    for record in material.sessions:
        own, told = record.get("work_s", {}), record.get("told_work_s", {})
        for kind in MEMORY:
            stream[kind] += own.get(kind, unknown)
            branches[kind] += told.get(kind, unknown)
    for kind in KINDS[len(MEMORY) :]:
        branches[kind] = derived(material)[f"{kind}_s"].sum(skipna=False)
    return pd.DataFrame({"stream_s": stream, "branches_s": branches}, index=list(KINDS))
