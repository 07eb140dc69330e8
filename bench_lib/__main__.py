"""`python -m bench_lib report RUN` writes the report of a run folder again, from its records.

`python -m bench_lib missing` prints the commands that the papers' tables still need.
"""

from __future__ import annotations

import argparse
import sys

from bench_lib.errors import BenchError


def main(argv: list[str] | None = None) -> int:
    """Do what is asked; a BenchError is one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m bench_lib", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="write the report of a run again")
    report.add_argument("run", help="name of a run's folder, a unique prefix of it, or latest")
    commands.add_parser("missing", help="print what the papers' tables still need")
    asked = parser.parse_args(argv)
    try:
        return _missing() if asked.command == "missing" else _report(asked.run)
    except BenchError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _report(run: str) -> int:
    from bench_lib.evaluate import page
    from bench_lib.evaluate.reading import reread
    from bench_lib.runs.find import find_run

    print(f"report: {page.save(reread(find_run(run)))}")
    return 0


def _missing() -> int:
    """The commands of 09_compare's last section over all runs that are there."""
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
