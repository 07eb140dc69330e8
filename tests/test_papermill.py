"""The main command as a user types it: at a terminal, redirected, and with mistakes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
QUICK = ["-p", "source", "dollhouse-small", "-p", "limit", "1", "-y", "tasks: [ER, PRM]"]


def papermill(
    *words: str, outputs: Path, stdout=subprocess.PIPE, notebook: str = "03_eval", **more
) -> subprocess.Popen:
    environment = {**os.environ, "BENCH_OUTPUTS": str(outputs)}
    command = [sys.executable, "-m", "papermill", f"notebooks/{notebook}.ipynb", *words]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, **more,
    )  # fmt: skip


def results(outputs: Path) -> tuple[list[Path], list[Path]]:
    return list(outputs.glob("runs/*/responses.*.jsonl")), list(outputs.glob("03_eval-*.html"))


def test_with_an_output_path(outputs: Path) -> None:
    target = str(outputs / "03_eval-{method}.ipynb")
    job = papermill(target, "-p", "method", "null", *QUICK, outputs=outputs)
    _, err = job.communicate(timeout=300)
    assert job.returncode == 0, err
    assert (outputs / "03_eval-null.ipynb").exists()
    responses, reports = results(outputs)
    assert len(responses) == len(reports) == 1
    assert "<svg" in reports[0].read_text()


def test_redirected_without_an_output_path(outputs: Path) -> None:
    job = papermill("-p", "method", "null", *QUICK, outputs=outputs)
    out, err = job.communicate(timeout=300)
    assert job.returncode == 0, err
    assert out.lstrip().startswith("{"), "papermill prints the notebook"
    responses, reports = results(outputs)
    assert len(responses) == len(reports) == 1


def test_at_a_terminal_papermill_asks_for_a_path(outputs: Path) -> None:
    """papermill itself refuses, at once; the README's form names a path."""
    leader, follower = pty.openpty()
    job = papermill("-p", "method", "null", outputs=outputs, stdout=follower)
    _, err = job.communicate(timeout=60)
    os.close(follower)
    os.close(leader)
    assert job.returncode == 2
    assert "OUTPUT_PATH" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-p", "metod", "fluxmem"], "unknown parameter 'metod'; did you mean 'method'?"),
        (["-p", "limit", "abc"], "parameter limit must be int, not str 'abc'"),
        (["-p", "method", "fluxmen"], "unknown method 'fluxmen'; did you mean 'fluxmem'?"),
        (
            ["-p", "source", "folder", "-p", "data_root", "/no/such"],
            "data_root '/no/such' is no folder",
        ),
        (["-y", "method_args: {short_frame: 4}", "-p", "method", "fluxmem"], "'short_frames'"),
    ],
)
def test_a_mistake_is_one_clear_line(outputs: Path, words: list[str], said: str) -> None:
    job = papermill(str(outputs / "x.ipynb"), *words, outputs=outputs)
    _, err = job.communicate(timeout=120)
    assert job.returncode != 0
    last = err.strip().splitlines()[-1]
    assert last.startswith("BenchError: "), last
    assert said in last
    assert not list(outputs.glob("runs/*/responses.*"))


@pytest.mark.slow
def test_08_makes_judges_and_shows_its_runs(outputs: Path) -> None:
    words = ["-y", "shared: {trajectories: [dollhouse-arena-small-003], limit: 1}"]
    job = papermill(str(outputs / "08.ipynb"), *words, outputs=outputs, notebook="08_streamarena")
    _, err = job.communicate(timeout=600)
    assert job.returncode == 0, err
    page = (outputs / "08_streamarena-household.html").read_text()
    assert all(name in page for name in ("streammind", "offline_mllm", "aura"))
    assert "One mission, round by round" in page
    assert len(list(outputs.glob("runs/*/verdicts.*.jsonl"))) == 3
