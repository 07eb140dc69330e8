"""`python -m bench_lib.report RUN`: write the report of a run folder again, from its records."""

from __future__ import annotations

import argparse
import sys

from bench_lib import paths
from bench_lib.errors import BenchError


def main(argv: list[str] | None = None) -> int:
    """Write one report and print where it is; BenchErrors are one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m bench_lib.report", description=__doc__)
    parser.add_argument("run", help="name of a run's folder, a unique prefix of it, or latest")
    parser.add_argument(
        "--where", action="store_true", help="only say where the report is; write none that exists"
    )
    asked = parser.parse_args(argv)
    from bench_lib.report import data, render
    from bench_lib.runs import find_run

    try:
        folder = find_run(asked.run)
        path = paths.outputs() / f"{folder.name}.html"
        if not (asked.where and path.exists()):
            path = render.save(data.reread(folder))
    except BenchError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"report: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
