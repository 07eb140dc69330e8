from __future__ import annotations

import pytest

from bench_lib.backbones.base import Backbone
from bench_lib.opening import backbones


@pytest.fixture(scope="session", params=["tiny-untrained", "tiny-qwen3"])
def backbone(request: pytest.FixtureRequest) -> Backbone:
    return backbones.load(request.param, device="cpu")


@pytest.fixture(scope="session")
def tiny() -> Backbone:
    return backbones.load("tiny-untrained", device="cpu")


@pytest.fixture(scope="session")
def tiny_qwen3() -> Backbone:
    return backbones.load("tiny-qwen3", device="cpu")
