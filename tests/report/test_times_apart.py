"""Times as the paper defines them, and as a stream meets them, stand in columns of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench_lib.readings.material import Material
from bench_lib.report import caveats, tables


@pytest.mark.parametrize("kind", ["incremental", "window", "thinned"])
def test_the_papers_first_token_depends_on_how_input_comes(full: Material, kind: str) -> None:
    facts: Any = {**full.facts, "input_class": kind}
    frame = tables.derived(_with(full, facts))
    begins = 0.0 if kind == "incremental" else frame["observe_s"]
    assert (frame["ttft_paper_s"] - frame["ttft_prep_s"] - begins).abs().max() < 1e-9
    assert (frame["rtf_stream"] * frame["prefix_s"] - frame["observe_s"]).abs().max() < 1e-6
    assert (frame["rtf"] > frame["rtf_stream"]).all()
    assert frame["observe_s"].min() > 0, "else nothing tells them apart"


def test_times_of_a_shared_device_are_told(full: Material) -> None:
    facts: Any = {**full.facts, "replies_at_once": 16}
    said = [c.text for c in caveats.shared_times(_with(full, facts))]
    assert any("their waits overlap" in text for text in said)


def _with(material: Material, facts: Any) -> Material:
    other = replace(material)
    other.__dict__["manifest"] = {**material.manifest, "facts": facts}
    return other


def test_bytes_on_disk_stand_beside_those_in_memory(build) -> None:
    material = build()
    assert "on disk" not in tables.state(material).note
    save = {"form": "int8", "exact": 4_096, "on_disk": 1_024, "written": 512}
    for _ in range(2):
        material.run.append("saves", save)
    note = tables.state(material).note
    assert "Saved (int8), the largest takes 1.0 KiB on disk for 4.0 KiB in memory" in note
    assert "1.0 KiB were written in 2 saves" in note
