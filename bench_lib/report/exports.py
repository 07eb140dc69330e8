"""Tables as CSV and LaTeX files, with the marks and reasons that stand beside them on the page."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bench_lib import paths
from bench_lib.files import write_whole as write
from bench_lib.report.sections import Page, Section
from bench_lib.report.tables import Cell, Row, Table

ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "—": "--", "–": "--", "−": "$-$", "†": r"$^\dagger$", "<": r"\textless{}",
    ">": r"\textgreater{}",
    "×": r"$\times$", "±": r"$\pm$",
}  # fmt: skip


def save_page(page: Page, home: Path) -> list[tuple[Path, str]]:
    """Write a report as HOME.html and its tables into HOME; the files and what they hold.

    Tables of one title, as a page about several runs has them, are numbered.
    """
    files = [(page.save(home.with_name(f"{home.name}.html")), "this page")]
    named: Counter[str] = Counter()
    for table in (table for part in page.sections for table in part.tables):
        named[table.title] += 1
        files += [(file, table.title) for file in save(table, home, named[table.title])]
    return files


def written(files: Iterable[tuple[Path, str]]) -> Section:
    """Where things were written, as a section of a notebook."""
    rows = tuple(Row((Cell(paths.short(file)), Cell(what))) for file, what in files)
    return Section("Written", "", (Table("Written", ("file", "what it holds"), rows, texts=2),))


def save(table: Table, folder: Path, number: int = 1) -> list[Path]:
    """Write NAME.csv and NAME.tex; the name is the table's title, numbered from the second on."""
    name = re.sub(r"\W+", "-", table.title.lower()).strip("-")
    name += f"-{number}" if number > 1 else ""
    return [
        write(folder / f"{name}.csv", to_csv(table)),
        write(folder / f"{name}.tex", to_latex(table)),
    ]


def to_csv(table: Table) -> str:
    """One line a row; small print and reasons have columns of their own where there are any."""
    rows = [row for row in table.rows if row.kind != "group"]
    width = len(table.columns)
    subs = [any(row.cells[i].sub for row in rows) for i in range(width)]
    whys = [any(row.cells[i].why for row in rows) for i in range(width)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = [name or f"column {i + 1}" for i, name in enumerate(table.columns)]
    names: list[str] = ["group"] if any(row.kind == "group" for row in table.rows) else []
    for i, name in enumerate(head):
        names += [name, *([f"{name}, detail"] if subs[i] else [])]
        names += [f"{name}, why missing"] if whys[i] else []
    writer.writerow(names)
    group = ""
    for row in table.rows:
        if row.kind == "group":
            group = row.cells[0].text
            continue
        values = [group] if names[0] == "group" and "group" not in head else []
        for i, cell in enumerate(row.cells):
            values += [
                cell.text,
                *([cell.sub] if subs[i] else []),
                *([cell.why] if whys[i] else []),
            ]
        writer.writerow(values)
    return out.getvalue()


def to_latex(table: Table) -> str:
    """A booktabs table; reasons for what is missing follow as notes."""
    kinds = "".join("l" if i < table.texts else "r" for i in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(table.title)}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        " & ".join(escaped(name) for name in table.columns) + r" \\",
        r"\midrule",
    ]
    lines += [_row(row, table) for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    notes = [f"$^{letter}$ {escaped(reason)}." for letter, reason in table.footnotes]
    if table.note:
        notes.append(escaped(table.note))
    lines += [rf"\par\footnotesize {note}" for note in notes]
    return "\n".join([*lines, r"\end{table}", ""])


def _row(row: Row, table: Table) -> str:
    if row.kind == "group":
        span = len(table.columns)
        return rf"\multicolumn{{{span}}}{{l}}{{\textit{{{escaped(row.cells[0].text)}}}}} \\"
    return " & ".join(_cell(cell, table) for cell in row.cells) + r" \\"


def _cell(cell: Cell, table: Table) -> str:
    text = escaped(cell.text) + (rf" {{\scriptsize {escaped(cell.sub)}}}" if cell.sub else "")
    return text + (f"$^{{{table.mark(cell)}}}$" if cell.why else "")


def escaped(text: str) -> str:
    """Text for LaTeX."""
    return "".join(ESCAPES.get(c, c) for c in text)
