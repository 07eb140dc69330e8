"""CONTRIBUTING follows a frame and a reply through the rooms: each hop is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOPS = re.findall(r"`([\w/]+\.py):(\w+)`", PAGE)


def test_there_is_a_way_to_follow() -> None:
    assert len(HOPS) >= 20


@pytest.mark.parametrize(("file", "name"), HOPS)
def test_each_hop_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / "bench_lib" / file).read_text(encoding="utf-8"))
    made = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert name in made


def test_the_tree_in_the_readme_names_every_room() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text[text.index("## The tree") : text.index("## Add a method")]
    rooms = [p.name for p in (ROOT / "bench_lib").iterdir() if (p / "__init__.py").exists()]
    missing = [room for room in rooms if f"{room}/" not in tree]
    assert missing == []
