"""House rules of the notebooks and of their parameter files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PRESETS = sorted((ROOT / "params").glob("*.yaml"))
LONGEST_CELL = 15


def cells(path: Path, kind: str = "code") -> list[nbformat.NotebookNode]:
    return [c for c in nbformat.read(path, 4).cells if c.cell_type == kind]


def parameters(path: Path) -> dict[str, str]:
    """Names of a notebook's parameters with their annotations."""
    tree = ast.parse(nbformat.read(path, 4).cells[1].source)
    return {n.target.id: ast.unparse(n.annotation) for n in tree.body}  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_keeps_the_house_rules(path: Path) -> None:
    book = nbformat.read(path, 4)
    assert re.fullmatch(r"\d\d_[a-z_]+", path.stem)
    assert book.cells[0].cell_type == "markdown"
    assert book.cells[0].source.startswith(f"# {path.stem[:2]} ")
    tagged = [i for i, c in enumerate(book.cells) if "parameters" in c.metadata.get("tags", [])]
    assert tagged == [1], "cell 1 must be the only parameters cell"
    for line in book.cells[1].source.splitlines():
        assert re.fullmatch(r"\w+: (str|int|float|bool|list|dict) = .+  # .+", line), line
        assert "#" not in line.split("  # ")[0], "a # in a default breaks papermill's help"
    assigned: list[str] = []
    for at, cell in enumerate(cells(path)):
        tree = ast.parse(cell.source)
        for node in ast.walk(tree):
            assert not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda), cell.source
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and at > 0:
                assert "/" not in node.value, f"a path in {cell.source!r}"
        assigned += [
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        ]
        assert at == 0 or len(cell.source.splitlines()) <= LONGEST_CELL
        assert not re.search(r"^\s*[!%]", cell.source, re.M)
        assert not cell.outputs, "outputs are not committed"
        assert cell.execution_count is None
    assert len(assigned) == len(set(assigned)), "a name is assigned in more than one cell"
    assert "bind(" in cells(path)[1].source, "the second code cell binds the parameters"


def test_the_parameters_cell_of_03_eval_is_the_record() -> None:
    from dataclasses import asdict, fields

    from bench_lib.params.evaluate import EvalParams

    path = ROOT / "notebooks" / "03_eval.ipynb"
    namespace: dict = {}
    exec(cells(path)[0].source, namespace)
    given = {k: v for k, v in namespace.items() if not k.startswith("__")}
    assert given == asdict(EvalParams())
    assert parameters(path) == {f.name: f.type for f in fields(EvalParams)}


@pytest.mark.parametrize("path", PRESETS, ids=lambda p: p.stem)
def test_a_preset_fits_its_notebook(path: Path) -> None:
    notebook, _, preset = path.stem.partition(".")
    assert preset, "a preset is called NOTEBOOK.PRESET.yaml"
    known = parameters(ROOT / "notebooks" / f"{notebook}.ipynb")
    values = yaml.safe_load(path.read_text()) or {}
    assert set(values) <= set(known), set(values) - set(known)
    for name, value in values.items():
        kind = {"str": str, "int": int, "float": (int, float), "bool": bool, "list": list,
                "dict": dict}[known[name]]  # fmt: skip
        assert isinstance(value, kind), f"{name}: {value!r}"  # type: ignore[arg-type]
    if notebook == "03_eval":
        from bench_lib import methods
        from bench_lib.params.evaluate import EvalParams

        params = EvalParams(**values)
        methods.load(params.method, **params.method_args)
