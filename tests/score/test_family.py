"""Which judges are of the judged model's family."""

from __future__ import annotations

import pytest

from bench_lib.score.family import akin, families


@pytest.mark.parametrize(
    ("judge", "judged", "kin"),
    [
        ("Qwen/Qwen3-235B@api.host/v1", "Qwen/Qwen3-VL-8B-Instruct@node7:8000/v1", "Qwen"),
        ("qwen3.8-27b@1#a1b2c3", "InternVL3_5-8B@vllm", "Qwen"),
        ("QwQ-32B@x", "DAMO-NLP-SG/VideoLLaMA3-7B@x", "Qwen"),
        ("gpt-5.1@api", "o4-mini@api", "GPT"),
        ("gemini-3.6-flash@g", "google/gemma-4-27b-it@v", "Gemini"),
        ("doubao-1.6@v", "seed-2.0-lite@v", "Seed"),
        ("deepseek-v4-flash@api.deepseek.com", "gemini-3.6-flash@g", ""),
        ("meta-llama/Llama-4@v", "VideoLLaMA3-7B@v", ""),
        ("claude-opus@a", "gpt-5@a", ""),
        ("deepseek@qwen-host:8000/v1", "Qwen3-VL-8B@x", ""),
        ("toy@a", "toy@b", "the same model"),
        ("toy@a", "other@b", ""),
        ("ideal-1", "ideal-1", "the same model"),
        ("toy@a", "none", ""),
        ("toy@a", "", ""),
    ],
)
def test_kinship(judge: str, judged: str, kin: str) -> None:
    assert akin(judge, judged) == kin


def test_words_that_only_look_like_a_family() -> None:
    for name in ("chronos-1", "photo3", "seeder", "dolphin-2", "video-agent"):
        assert not families(name), name
