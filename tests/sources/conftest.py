"""One film for all folders of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from folder_home import SECONDS
from synthetic import movie


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return movie(tmp_path_factory.mktemp("film") / "film.mp4", SECONDS)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A trajectory's folder, below a root of its own."""
    return tmp_path / "root" / "t"
