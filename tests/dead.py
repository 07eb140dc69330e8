"""What nothing uses, in the package, the notebooks and the templates: `python tests/dead.py`.

Tests are no use. Registries are known by rule: what a file of their folders holds is found by name.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "bench_lib"
LEAST = 60
"""Vulture's confidence, in percent."""
REGISTRIES = ("methods", "backbones", "benches")
"""Their files' classes are found by name."""
ADDED_BY = [
    "@check*",
    "@rule*",
    "@draws*",
    "@atexit.register",
    "@model_validator",
    "@field_validator",
]
"""Decorators that add a function to a list, or a library's own."""
CALLED_FROM_OUTSIDE = [
    "_render_traceback_", "_repr_html_",  # IPython
    "do_GET", "do_POST", "log_message", "protocol_version",  # http.server
    "forward",  # torch
    "model_config",  # pydantic
    "pix_fmt", "sample_rate", "thread_count", "thread_type",  # PyAV
    "pre_tokenizer", "writeable", "maxlong", "maxother", "maxstring",  # tokenizers, numpy, reprlib
    "_micro", "_macro", "_super", "_fact", "bye", "look_up",  # found by the name of a record
    "__init_subclass__",  # Python
    "w[qkv]_*", "wq_*", "wk_*", "wv_*", "lag_linear_*",  # found by the name of a tensor
]  # fmt: skip
MEASURED = [
    "kv_bytes", "kv_bytes_per_token", "visual_tokens",  # what tests hold published sizes against
    "ready_bytes", "end_idle",  # what tests hold the decoder's memory and processes by
    "storage_per_hour", "peak_bytes",  # Eq. 2, held against the published rows
    "codec", "has_audio", "test", "detectable",  # fields of records that are written whole
]  # fmt: skip
"""What is there to be looked at from outside."""
TOOLS = {
    "bench_lib/dollhouse/world/export_egolife.py": "the household as a tree of files",
    "bench_lib/dollhouse/world/export_hd_epic.py": "the household as a tree of files",
    "bench_lib/dollhouse/world/export_stream_arena.py": "the household as a tree of files",
    "bench_lib/score/ovo_bench.py": "scores shipped answers again, see CONTRIBUTING",
    "bench_lib/chat/recorded.py": "replies given by hand, for whoever tries a method",
}
"""Files that people call from outside, and for what."""


def cells(folder: Path) -> list[Path]:
    """The code of each notebook as a Python file."""
    made = []
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        listed = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in listed if cell["cell_type"] == "code"]
        made.append(folder / f"cells_{notebook.stem}.py")
        made[-1].write_text("\n".join(code), encoding="utf-8")
    return made


def unused() -> list[str]:
    """One line for each definition that nothing uses."""
    in_templates = {
        word
        for template in PACKAGE.rglob("*.html")
        for word in re.findall(r"\w+", template.read_text(encoding="utf-8"))
    }
    looker = Vulture(ignore_names=[*CALLED_FROM_OUTSIDE, *MEASURED], ignore_decorators=ADDED_BY)
    with tempfile.TemporaryDirectory() as folder:
        looker.scavenge([str(PACKAGE), *map(str, cells(Path(folder)))])
    found = []
    for item in looker.get_unused_code(min_confidence=LEAST):
        if PACKAGE not in Path(item.filename).parents or item.name in in_templates:
            continue
        place = Path(item.filename).relative_to(ROOT)
        registered = item.typ == "class" and place.parts[1] in REGISTRIES
        if not registered and str(place) not in TOOLS:
            found.append(f"{place}:{item.first_lineno}: unused {item.typ} {item.name!r}")
    return found


if __name__ == "__main__":
    dead = unused()
    print("\n".join(dead) or "nothing is dead")
    sys.exit(bool(dead))
