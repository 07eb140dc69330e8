"""`python -m bench_lib.methods`: all methods with what they declare, as a Markdown table."""

from __future__ import annotations

from bench_lib import methods
from bench_lib.memories.method import Method

COLUMNS = ("method", "input", "persistent", "bounded", "model", "idea")


def row(name: str) -> tuple[str, ...]:
    """What a method declares at its default settings; its idea is its module's first line."""
    cls = methods.find(name)
    method = cls()
    model = f"{method.model}, tuned weights" if method.needs_weights else method.model
    return (
        f"`{name}`",
        method.input_class,
        _yes(method.persistent),
        _yes(method.bounded),
        model,
        _idea(cls),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _idea(cls: type[Method]) -> str:
    import sys

    lines = (sys.modules[cls.__module__].__doc__ or "").strip().splitlines()
    return lines[0].partition(": ")[2].rstrip(".") if lines else ""


def table() -> str:
    """All methods, one a line."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *map(row, methods.available())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


if __name__ == "__main__":
    print(table())
