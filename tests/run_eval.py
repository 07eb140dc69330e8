"""What the tests start as a process of its own: one evaluation with parameters given as JSON."""

from __future__ import annotations

import json
import sys

import conftest  # noqa: F401 - makes the tests' own methods known

from bench_lib.evaluate.job import Evaluation
from bench_lib.params.evaluate import EvalParams

if __name__ == "__main__":
    job = Evaluation.open(EvalParams(**json.loads(sys.argv[1])))
    job.execute(progress=False)
    print(job.run.folder)
