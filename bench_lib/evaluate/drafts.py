"""A method of one's own, outside this package: a file in any folder, found like those in it."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.params.evaluate import EvalParams

TEMPLATE = Path(__file__).parent / "template.txt"


@dataclass(frozen=True)
class DraftParams:
    """Parameters of 10_new_method; the notebook's comments say what each is for."""

    method: str = "halving"
    folder: str = ""
    small: dict = field(default_factory=lambda: {"room": 8})
    method_args: dict = field(default_factory=dict)
    source: str = "dollhouse-small"
    data_root: str = ""
    backbone: str = "ideal"
    limit: int = 1
    seed: int = 42
    name: str = ""

    def evaluation(self, drafted: Draft) -> EvalParams:
        """The parameters of 03_eval for the drafted method; another source is another run."""
        return EvalParams(
            method=drafted.name,
            method_args=self.method_args,
            source=self.source,
            data_root=self.data_root,
            backbone=self.backbone,
            limit=self.limit,
            seed=self.seed,
            name=self.name or drafted.label,
        )


@dataclass(frozen=True)
class Draft:
    """A method's name, its file, and the source that is there."""

    name: str
    path: Path
    source: str

    @property
    def label(self) -> str:
        """A name for runs of exactly this source: another source is another run."""
        return f"{self.name}-{hashlib.sha256(self.source.encode()).hexdigest()[:6]}"


def draft(name: str = "halving", folder: str = "") -> Draft:
    """Make `NAME.py` known as a method; where the folder has none, it is the template's text.

    An edited file is read again. Without a folder a temporary one is made.

    Raises:
        BenchError: The name is no name of a module, or that of a method elsewhere.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BenchError(f"a method is named like its file: small letters, not {name!r}")
    home = Path(folder).expanduser() if folder else Path(tempfile.mkdtemp(prefix="methods-"))
    home.mkdir(parents=True, exist_ok=True)
    path = home.resolve() / f"{name}.py"
    others = [place for place in methods.__path__ if Path(place).resolve() != path.parent]
    for place in others:
        if (Path(place) / path.name).exists():
            raise BenchError(f"there is a method {name!r} already, in {place}; choose another name")
    if not path.exists():
        path.write_text(TEMPLATE.read_text(encoding="utf-8"), encoding="utf-8")
    if len(others) == len(methods.__path__):
        methods.__path__.append(str(path.parent))
    importlib.invalidate_caches()
    sys.modules.pop(f"{methods.__name__}.{name}", None)
    return Draft(name, path, path.read_text(encoding="utf-8"))
