"""`python -m bench_lib.report RUN`: write the report of a run folder again, from its records.

`python -m bench_lib.report --missing` prints the commands that the papers' tables still need.
"""

from __future__ import annotations

import argparse
import sys

from bench_lib import paths
from bench_lib.errors import BenchError


def main(argv: list[str] | None = None) -> int:
    """Write one report and print where it is; BenchErrors are one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m bench_lib.report", description=__doc__)
    parser.add_argument(
        "run", nargs="?", help="name of a run's folder, a unique prefix of it, or latest"
    )
    parser.add_argument(
        "--missing", action="store_true", help="print what the papers' tables still need"
    )
    parser.add_argument(
        "--where", action="store_true", help="only say where the report is; write none that exists"
    )
    asked = parser.parse_args(argv)
    if bool(asked.run) == asked.missing:
        parser.error("give a run, or --missing")
    if asked.missing:
        return _missing()
    from bench_lib.evaluate import page as render
    from bench_lib.readings import material
    from bench_lib.runs.folder import find_run

    try:
        folder = find_run(asked.run)
        path = paths.outputs() / f"{folder.name}.html"
        if not (asked.where and path.exists()):
            path = render.save(material.reread(folder))
    except BenchError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"report: {path}")
    return 0


def _missing() -> int:
    """Print the commands of 09_compare's last section over all runs that are there."""
    from bench_lib.compare import page
    from bench_lib.compare.job import Comparison
    from bench_lib.params.readings import CompareParams
    from bench_lib.report.sections import Listing

    job = Comparison.open(CompareParams())
    for piece in page.commands(job).pieces:
        if isinstance(piece, Listing):
            print(f"## {piece.title}\n\n{piece.text}\n")
    for left in job.left_out:
        print(f"not read: {left}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
