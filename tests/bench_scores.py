"""What scoring costs at full size: `python tests/bench_scores.py`. Prints a table, asserts nothing.

CPU seconds for 10,000 judged probes of 104 trajectories: reading the records, scores, analyses, and
the whole reports of 03_eval and 04_judge.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.append(str(HERE / "report"))

TRAJECTORIES, EACH = 104, 3


def cpu_s(name: str, work: Callable[[], Any]) -> Any:
    """Do it and print what it took."""
    begun = time.process_time()
    made = work()
    print(f"{name:<40} {time.process_time() - begun:6.1f} s CPU")
    return made


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("made_up", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """All measurements on one made-up run."""
    made_up = _module(HERE / "report" / "conftest.py")
    from bench_lib.evaluate import page as render
    from bench_lib.judge import page
    from bench_lib.judge.job import Judging
    from bench_lib.params.readings import JudgeParams
    from bench_lib.readings.judged import cases_of
    from bench_lib.readings.material import Material
    from bench_lib.report import analysis, analysis_tables
    from bench_lib.schema import KEY, Verdict

    made_up.trajectory.__defaults__ = (4, EACH + 4)
    material = cpu_s("making the run", lambda: made_up.made(TRAJECTORIES))
    cases = cases_of(material)
    for number, case in enumerate(cases):
        named = dict(zip(KEY, case.key, strict=True))
        one = Verdict(**named, judge="made", digest=case.digest, score=1 + number % 5)
        material.run.append("verdicts", one)
    material.run.close()
    adaptive = sum(1 for _, ask in material.asks.values() if ask.probe.polarity)
    print(f"{len(material.asks):,} asks, {adaptive:,} of them adaptive, {len(cases):,} verdicts")
    fresh = Material(material.run, material.params, material.bench, material.trajectories,
                     material.asks)  # fmt: skip
    cpu_s("reading records into rows", lambda: fresh.scored)
    cpu_s("scores by task and capability", lambda: fresh.found.metrics())
    cpu_s("baselines", lambda: analysis_tables.baselines(fresh))
    cpu_s("analyses", lambda: analysis.of(fresh))
    cpu_s("report of 03_eval", lambda: render.of(fresh).html)
    job = Judging(JudgeParams(), fresh, chat=_Nobody())  # type: ignore[arg-type]
    cpu_s("report of 04_judge", lambda: page.of(job).html)


class _Nobody:
    """A judge that has judged everything already."""

    def __init__(self) -> None:
        self.id, self.identity = "made", {"id": "made"}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BENCH_OUTPUTS"] = folder
        main()
