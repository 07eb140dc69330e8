"""What the tiny model reaches on worlds it has never seen, by free generation through the engine.

`python -m bench_lib.evaluate.tiny_check`; videos are real H.264 ones.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from bench_lib import paths, prompts
from bench_lib.backbones.base import Backbone
from bench_lib.dollhouse.training import letters as train_letters
from bench_lib.dollhouse.training.layout import Clerk
from bench_lib.dollhouse.training.rows import batch
from bench_lib.dollhouse.training.scenes import scenes
from bench_lib.dollhouse.training.text import Bank, loss
from bench_lib.dollhouse.training.vision import Readout, looked_at
from bench_lib.dollhouse.training.words import FIELDS, cells
from bench_lib.dollhouse.world import library
from bench_lib.dollhouse.world.render import Look
from bench_lib.dollhouse.world.world import SMALL, build
from bench_lib.evaluate.job import Evaluation
from bench_lib.opening import backbones
from bench_lib.params.evaluate import EvalParams
from bench_lib.score.cells import Cells, pooled, scaled
from bench_lib.score.stats import PERCENT, Estimate, estimate

FIRST_SEED = 500_000
"""Held-out worlds begin here: no set and no training has such seeds."""
NOW = ("ACR", "CT", "OCR", "STU")
RECALL = ("ER", "EST", "TR")
DECIDE = ("ERA", "RCR", "PRM", "MPA", "TPG")
RUNS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "perception": ("simplestream", NOW, {}),
    "no memory": ("simplestream", RECALL, {}),
    "oracle": ("raw_video", RECALL, {"condition": "oracle"}),
    "history": ("raw_video", RECALL, {}),
    "emptied": ("raw_video", RECALL, {"memory": "empty"}),
    "decisions": ("raw_video", DECIDE, {"condition": "oracle"}),
}
"""What is measured: name, method, tasks, and what is fed."""
PAIRS = (("history", "no memory"), ("oracle", "history"), ("history", "emptied"))
"""Which run must be better than which, fixed before anything was measured."""


def unseen(worlds: int) -> str:
    """Make the set of held-out worlds known to this process; returns its source's name."""
    small = library.SETS["small"]
    seeds = tuple(range(FIRST_SEED, FIRST_SEED + worlds))
    library.SETS["unseen"] = replace(small, seeds=seeds, look=Look(fps=1, sound=False))
    return "dollhouse-unseen"


def letters(backbone: Backbone, lists: int = 60) -> Estimate:
    """The letter look-up by itself: the likeliest letter once the content is given."""
    clerk, rng = Clerk(backbone.tokenizer), np.random.default_rng((FIRST_SEED, 1))
    texts, bank = prompts.load("compact"), Bank(backbone.tokenizer)
    ids = torch.tensor([clerk.token(x) for x in train_letters.LETTERS])
    rows = []
    for number in range(lists):
        lot = batch([train_letters.lesson(clerk, texts, rng)], clerk.token("<|endoftext|>"))
        with torch.no_grad():
            _, right, wanted = loss(backbone.model, lot, bank)
        rows += [(str(number), "letter", float(r)) for r in right[torch.isin(wanted, ids)]]
    return estimate_of(pd.DataFrame(rows, columns=["trajectory", "task", "right"]))


def sight(backbone: Backbone, worlds: int) -> pd.DataFrame:
    """What the tower says on drawn scenes of held-out worlds: one row per word there is to say."""
    readout = Readout(backbone.tokenizer, backbone.model.get_input_embeddings().weight)
    rows = []
    for number in range(worlds):
        world = build(FIRST_SEED + number, SMALL)
        pairs = torch.from_numpy(scenes(world, 0, paths.cache() / "training" / "scenes"))
        with torch.no_grad():
            seen = torch.cat([looked_at(backbone, part) for part in pairs.split(32)])  # type: ignore[arg-type]
        shots = [shot for film in world.films for shot in film.shots]
        for tokens, shot in zip(seen, shots, strict=True):
            for field, wanted in readout.target(cells(shot))[1].items():
                there = (wanted >= 0) & (wanted < len(FIELDS[field]))
                best = readout.scores(tokens[there], field).argmax(-1)
                rows += [(str(number), field, float(ok)) for ok in best == wanted[there]]
    return pd.DataFrame(rows, columns=["trajectory", "task", "right"])


def answers(spec: str, source: str, run: str, limit: int) -> pd.DataFrame:
    """One row per ask of a run: trajectory, task, polarity, whether right, status."""
    method, tasks, fed = RUNS[run]
    done = Evaluation.open(
        EvalParams(
            method=method,
            source=source,
            backbone=spec,
            tasks=list(tasks),
            prompts="compact",
            max_new_tokens=dict.fromkeys(("choice", "adaptive_choice", "adaptive_text"), 96),
            limit=limit,
            states="none",
            name=f"tiny-{run.replace(' ', '-')}",
            **fed,  # type: ignore[arg-type]
        ),
        "check",
    )
    done.execute(progress=False)
    keys = {c.id: c for t in done.trajectories for c in t.candidates}
    rows = []
    for reply in done.responses():
        right = reply.option == keys[reply.candidate].answer
        if reply.task in DECIDE:
            right = reply.decision == {"positive": "INTERVENE"}.get(reply.polarity or "", "SILENT")
        row = (reply.trajectory, reply.candidate, reply.task, reply.polarity or "", float(right))
        rows.append((*row, reply.status))
    columns = ["trajectory", "candidate", "task", "polarity", "right", "status"]
    return pd.DataFrame(rows, columns=columns)


def estimate_of(frame: pd.DataFrame, bounds: tuple[float, float] = PERCENT) -> Estimate:
    """Share that is right in per cent, with its interval by trajectory."""
    scored = frame.assign(all="all")
    return estimate(Cells.of(scored, "right", "all"), scaled(pooled, 100), bounds=bounds)


def gain(better: pd.DataFrame, worse: pd.DataFrame) -> Estimate:
    """How much more is right in one run than in another on the same asks, in per cent."""
    both = better.merge(worse, on=["trajectory", "candidate", "task"], validate="one_to_one")
    both = both.assign(right=both["right_x"] - both["right_y"])
    return estimate_of(both, (-100, 100))


def report(spec: str, worlds: int, limit: int, runs: list[str]) -> None:
    """Print a Markdown table of what is reached."""
    source = unseen(worlds)
    backbone = backbones.load(spec, device="cpu")
    print("| skill | right, % | interval, 95 % | n | worlds |\n|---|---|---|---|---|")
    _line("letter look-up", letters(backbone))
    for field, part in sight(backbone, min(worlds, 20)).groupby("task"):
        _line(f"tower: {field}", estimate_of(part))
    kept = {}
    for run in runs:
        kept[run] = found = answers(spec, source, run, limit)
        if run == "decisions":
            # Balanced: both polarities count alike, whatever their numbers.
            for task, part in found.groupby("task"):
                for polarity, half in part.groupby("polarity"):
                    _line(f"{run}: {task} {polarity}", estimate_of(half))
            continue
        _line(run, estimate_of(found))
        for task, part in found.groupby("task"):
            _line(f"{run}: {task}", estimate_of(part))
        broken = (found["status"] == "unparsed").sum()
        print(f"| {run}: unparsed | {100 * broken / len(found):.1f} | | {len(found)} | |")
    for better, worse in PAIRS:
        if better in kept and worse in kept:
            _line(f"{better} minus {worse}", gain(kept[better], kept[worse]))


def _line(name: str, e: Estimate) -> None:
    between = f"{e.low:.1f} to {e.high:.1f}" if e.interval else e.note
    print(f"| {name} | {e.value:.1f} | {between} | {e.n} | {e.clusters} |", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="tiny", help="a name or a checkpoint folder")
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--limit", type=int, default=0, help="candidates a task; 0 is all")
    parser.add_argument("--runs", nargs="*", default=list(RUNS), choices=list(RUNS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    spec = str(Path(given.backbone)) if Path(given.backbone).is_dir() else given.backbone
    report(spec, given.worlds, given.limit, given.runs)


if __name__ == "__main__":
    main()
