"""The commands that the papers' tables still need, and those already there."""

from __future__ import annotations

from dataclasses import dataclass

from bench_lib import methods, paths
from bench_lib.readings.material import Material
from bench_lib.score import published

SERVED = {
    "seed_2_0_lite": "endpoint:seed-2.0-lite@URL",
    "gemini_3_6_flash": "endpoint:gemini-3.6-flash@URL",
    "qwen3_8_27b": "endpoint:Qwen3.8-27B@URL",
    "qwen3_vl_8b": "endpoint:Qwen/Qwen3-VL-8B-Instruct@URL",
    "internvl3_5_8b": "endpoint:InternVL3_5-8B@URL",
    "videollama3_7b": "endpoint:VideoLLaMA3-7B@URL",
}
"""How a general model of the paper is reached; the names are those a server was started with."""
SMALL_CONTEXT = ("internvl3_5_8b", "videollama3_7b")


@dataclass(frozen=True)
class Wanted:
    """A row of the paper's main tables: what makes it, and why it cannot be made where it can't."""

    row: str
    method: str
    backbone: str
    command: str
    cannot: str = ""
    run: str = ""


def wanted(runs: dict[str, Material]) -> list[Wanted]:
    """Every system of APM-Bench's tables 3, 4, 6, 7 and 10 to 12, with the run that is there."""
    rows = []
    for _, row in published.table("table_4_tasks").iterrows():
        name, protocol = str(row["method"]), str(row["memory_protocol"])
        general = name in SERVED
        method = protocol if general else name
        label = published.method_name(name)
        label += f", {protocol.replace('_', ' ')}" if general else ""
        if method not in methods.available():
            why = f"there is no method {method} yet; 10_new_method shows how to add one"
            rows.append(Wanted(label, method, "", "", why))
            continue
        backbone = SERVED.get(name, "")
        command = _command(method, backbone, name)
        rows.append(Wanted(label, method, backbone, command, "", _present(runs, method, backbone)))
    return rows


def _command(method: str, backbone: str, name: str) -> str:
    title = f"{name}-{method}" if backbone else method
    words = [f"papermill notebooks/03_eval.ipynb outputs/03_eval-{title}.ipynb"]
    preset = paths.root() / "params" / f"03_eval.apm-{method}.yaml"
    words.append(f"-f params/{preset.name}" if preset.exists() else f"-p method {method}")
    if backbone:
        words.append(f"-p name {title} -p backbone '{backbone}'")
        if method == "raw_video" and name in SMALL_CONTEXT:
            words.append("-y 'method_args: {max_frames: 128}'")
    elif not preset.exists():
        words.append(f"-p backbone '{_named(name)}'")
    words.append("-p source SOURCE -p data_root FOLDER")
    return " \\\n    ".join(words)


def _named(method: str) -> str:
    """The model that table 5 of the paper names; its owner on the hub is not printed there."""
    rows = published.table("table_5_backbones")
    found = rows[rows["method"] == method]["backbone"]
    return str(found.iloc[0]) if len(found) else "MODEL"


def _present(runs: dict[str, Material], method: str, backbone: str) -> str:
    """The label of a run on real data that makes the row; empty where there is none."""
    served = backbone.removeprefix("endpoint:").partition("@")[0]
    for label, material in runs.items():
        params = material.params
        real = not (material.generated or material.own)
        whole = not (params.limit or params.tasks or params.trajectories)
        same = params.method == method and served in params.backbone
        if real and whole and same and params.condition == "standard":
            return label
    return ""


def unjudged(runs: dict[str, Material]) -> list[str]:
    """A judge's command for each run whose passed replies have no verdict yet."""
    commands = []
    for material in runs.values():
        if material.scored.rows["unjudged"].any():
            name = material.run.folder.name
            judge = "" if material.data_judge else (
                " \\\n    -p judge 'endpoint:MODEL@URL'"
            )  # fmt: skip
            commands.append(
                f"papermill notebooks/04_judge.ipynb outputs/04_judge-{name}.ipynb -p run {name}"
                + judge
            )
    return commands


DEMO = ("simplestream", "raw_video", "text_summary")


def demo() -> str:
    """Commands for a first comparison on a laptop."""
    return "\n".join(
        f"papermill notebooks/03_eval.ipynb outputs/03_eval-{name}.ipynb "
        f"-p method {name} -p backbone ideal -p source dollhouse-small"
        for name in DEMO
    )
