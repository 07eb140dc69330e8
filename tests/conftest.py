"""Shared fixtures: no network, one thread, outputs in a folder of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["MPLBACKEND"] = "agg"

from bench_lib import methods

EXTRA = str(Path(__file__).parent / "extra_methods")
if EXTRA not in methods.__path__:
    methods.__path__.append(EXTRA)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if "slow" in item.keywords and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))
        if "gpu" in item.keywords and not _cuda():
            item.add_marker(pytest.mark.skip(reason="needs an accelerator"))


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Generated media and checkpoints are shared by the workers of one machine, not with a user."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    os.environ.setdefault("BENCH_CACHE", str(shared / "cache"))


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty outputs folder that the package writes to."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    monkeypatch.setenv("BENCH_OUTPUTS", str(folder))
    return folder
