"""From tables, figures and cards to HTML: fragments for a notebook, templates for a page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench_lib.report.tables import Table
from bench_lib.report.theme import COLOURS, Figure


class Fragment:
    """A piece of a report that a notebook shows; it carries its own style."""

    def __init__(self, name: str, html: str) -> None:
        self.name, self.html = name, html

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<{self.name}>"


def table(made: Table) -> Fragment:
    """A table for a notebook."""
    return _fragment(made.title, "table", made=made)


def figures(made: Sequence[Figure]) -> Fragment:
    """Figures for a notebook."""
    return _fragment("figures: " + ", ".join(f.title for f in made), "figures", made=made)


def cards(made: Sequence[Any]) -> Fragment:
    """Cards for a notebook."""
    return _fragment(f"{len(made)} cards", "cards", made=made)


def strip(made: Sequence[Any]) -> Fragment:
    """A row of frames for a notebook."""
    return _fragment(f"{len(made)} frames", "strip", made=made)


def joined(parts: Sequence[Fragment]) -> Fragment:
    """Fragments one below the other."""
    return Fragment(", ".join(p.name for p in parts), "".join(p.html for p in parts))


def _fragment(name: str, macro: str, made: Any) -> Fragment:
    return Fragment(name, template("fragment.html").render(macro=macro, made=made))


@cache
def _environment() -> Environment:
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["style"] = Markup((here / "style.css").read_text(encoding="utf-8"))
    environment.globals["capabilities"] = dict(COLOURS)
    return environment


def template(name: str) -> Any:
    """A template of this folder."""
    return _environment().get_template(name)
