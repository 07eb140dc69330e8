"""make lint notices an import that points upward, a circle, and what nothing uses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAYERS = "from importlinter.cli import lint_imports_command as check; check()"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the tools read."""
    for name in ("bench_lib", "notebooks"):
        left_out = shutil.ignore_patterns("__pycache__", "*.safetensors", "*.png")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "dead.py", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def told(tree: Path, *command: str) -> tuple[int, str]:
    """Exit code and output of a tool in that tree."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("video/clips.py", "from bench_lib.engine import walk", "bench_lib.video is not allowed"),
        ("schema.py", "def late():\n    from bench_lib import sources", "bench_lib.schema is not"),
        ("replies/cues.py", "from bench_lib.replies import parse", "No cycles are allowed"),
    ],
)
def test_an_import_that_goes_back_is_an_error(tree: Path, file: str, line: str, said: str) -> None:
    path = tree / "bench_lib" / file
    path.write_text(f"{path.read_text()}\n\n{line}\n")
    code, output = told(tree, "-c", LAYERS, "--no-cache")
    assert code != 0
    assert said in output


@pytest.mark.slow
def test_what_nothing_uses_is_an_error(tree: Path) -> None:
    assert told(tree, "tests/dead.py") == (0, "nothing is dead\n")
    path = tree / "bench_lib" / "score" / "stats.py"
    path.write_text(f"{path.read_text()}\n\ndef never_called() -> None:\n    pass\n")
    code, output = told(tree, "tests/dead.py")
    assert code != 0
    assert "unused function 'never_called'" in output
