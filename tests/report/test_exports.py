"""Every table of a report has files of its own."""

from __future__ import annotations

from pathlib import Path

from bench_lib.report.exports import save_page
from bench_lib.report.sections import Page, Section
from bench_lib.report.tables import Cell, Row, Table


def test_tables_of_one_title_do_not_overwrite_each_other(tmp_path: Path) -> None:
    tables = tuple(Table("Every case", ("run",), (Row((Cell(name),)),)) for name in ("one", "two"))
    page = Page("kind", "title", "", (Section("Cases", "", tables),), ())
    files = save_page(page, tmp_path / "report")
    assert len({path for path, _ in files}) == len(files) == 5
    assert "one" in (tmp_path / "report" / "every-case.csv").read_text()
    assert "two" in (tmp_path / "report" / "every-case-2.csv").read_text()
