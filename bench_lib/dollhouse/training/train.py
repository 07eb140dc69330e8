"""Train the tiny model: `python -m bench_lib.dollhouse.training.train`. The same command resumes.

On more cores: `torchrun --nproc-per-node 4 -m bench_lib.dollhouse.training.train`.

Stages, each kept in a file of its own: the letter look-up alone (`train_letters`); captions, and
finding the thing at a place, with visual tokens spoken in words; stories and questions about them
(`train_lessons`); the tower, which learns to say those words (`train_vision`); stories on what the
tower sees. The embeddings of tokens stay
as they were drawn: they are the code that tower and decoder agree on, so both can be trained apart.
See the README beside the weights for what was reached.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench_lib import paths, prompts
from bench_lib.backbones import hf_compat
from bench_lib.dollhouse.training import letters as train_letters
from bench_lib.dollhouse.training import tiny
from bench_lib.dollhouse.training import vision as train_vision
from bench_lib.dollhouse.training.layout import Clerk
from bench_lib.dollhouse.training.loop import Stage, Step, fit
from bench_lib.dollhouse.training.packs import Teacher, steps
from bench_lib.dollhouse.training.rows import batch
from bench_lib.dollhouse.training.scenes import scenes
from bench_lib.dollhouse.training.stories import FIRST_SEED, Eyes, Library
from bench_lib.dollhouse.training.text import Bank, loss
from bench_lib.dollhouse.training.vision import Readout, looked_at, opened
from bench_lib.dollhouse.world.world import World

STAGES = {
    "letters": Stage("letters", 3_000, 2e-3, ("letter", 0.97)),
    "captions": Stage("captions", 3_000, 1.5e-3, ("content", 0.97)),
    "stories": Stage("stories", 8_000, 1.5e-3),
    "vision": Stage("vision", 14_000, 1.5e-3),
    "seen": Stage("seen", 2_800, 1e-3),
}
"""In their order; by the times of single steps about five hours on one free core."""
MIXES = {
    "captions": {"caption": 0.75, "look_up": 0.25},
    "stories": {"now": 0.36, "recall": 0.32, "watch": 0.2, "caption": 0.04, "look_up": 0.08},
    "seen": {"now": 0.46, "recall": 0.32, "history": 0.04, "watch": 0.12, "look_up": 0.06},
}
"""What the stages of stories are mixed from; see `Teacher`."""
SPOKEN_WORLDS, SEEN_WORLDS = 600, 200
TOKENS = 2_500
"""Tokens of a step."""
_QUIET = 0.3
_SURE = 20.0
"""Score of a token whose embedding a last state points at."""


def blank(seed: int) -> tuple[Any, Any]:
    """The untrained model, its embeddings held fast, and its tokenizer.

    Embeddings have unit variance and layers begin quietly, so that a token is not drowned by what
    untrained layers add to it; the last norm makes up for it, because the head is the same table.
    """
    import transformers

    folder = tiny.checkpoint("tiny-untrained", seed)
    model = transformers.AutoModelForImageTextToText.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    table: Any = model.get_input_embeddings().weight.requires_grad_(False)
    table.div_(table.std())
    text: Any = model.model.language_model
    for layer in text.layers:
        layer.self_attn.o_proj.weight.data *= _QUIET
        layer.mlp.down_proj.weight.data *= _QUIET
    text.norm.weight.data.fill_(_SURE / float(table.square().sum(1).mean()))
    return model, hf_compat.tokenizer(folder)


def letters(model: Any, clerk: Clerk, seed: int, size: int) -> Step:
    """Steps of the letter look-up, `size` lists of options each."""
    texts, bank, pad = prompts.load("compact"), Bank(clerk.tokenizer), clerk.token("<|endoftext|>")
    letter_ids = torch.tensor([clerk.token(x) for x in train_letters.LETTERS])

    def step(number: int) -> Any:
        rng = np.random.default_rng((seed, 1, number))
        lot = batch([train_letters.lesson(clerk, texts, rng) for _ in range(size)], pad)
        value, right, wanted = loss(model, lot, bank)
        right = right.cpu()
        at = torch.isin(wanted.cpu(), letter_ids)
        return value, {"letter": (float(right[at].sum()), float(at.sum()))}

    return step


def vision(model: Any, tokenizer: Any, seed: int) -> Step:
    """Steps of the tower, 40 scenes each."""
    readout = Readout(tokenizer, model.get_input_embeddings().weight)
    return train_vision.steps(opened(model, tokenizer), readout, seed, 40)


def stories(
    model: Any, clerk: Clerk, seed: int, size: int, mix: str, eyes: Eyes | None = None
) -> Step:
    """Steps over stories, `size` tokens each: on spoken tokens, or on what `eyes` see."""
    bank = Bank(clerk.tokenizer)
    if eyes:
        library = Library(bank, SEEN_WORLDS, FIRST_SEED + 10_000, eyes)
    else:
        library = Library(bank, SPOKEN_WORLDS)
    teacher = Teacher(clerk, prompts.load("compact"), library)
    parts = [(name, share, getattr(teacher, name)) for name, share in MIXES[mix].items()]
    return steps(model, clerk, bank, parts, seed, size, 0.25 if eyes is None else 0.05)


def eyes_of(model: Any, tokenizer: Any, seed: int, folder: Path) -> Eyes:
    """What the trained tower sees of a world, on scenes it was not trained on."""
    backbone = opened(model, tokenizer)

    def see(world: World) -> Tensor:
        pairs = torch.from_numpy(scenes(world, seed, folder / "scenes"))
        with torch.no_grad():
            return torch.cat([looked_at(backbone, part).cpu() for part in pairs.split(32)])

    return see


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=paths.cache() / "training")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default="", help="one stage: " + ", ".join(STAGES))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    given.folder.mkdir(parents=True, exist_ok=True)
    model, tokenizer = blank(given.seed)
    model = model.to(given.device)
    clerk = Clerk(tokenizer)
    text, tower = model.model.language_model, model.model.visual
    for name, stage in STAGES.items():
        if given.only and name != given.only:
            resume(given.folder / f"{name}.pt", tower if name == "vision" else text)
            continue
        if name == "vision":
            part, step = tower, vision(model, tokenizer, given.seed)
        elif name == "letters":
            part, step = text, letters(model, clerk, given.seed, 24)
        else:
            eyes = eyes_of(model, tokenizer, given.seed, given.folder) if name == "seen" else None
            part, step = text, stories(model, clerk, given.seed, TOKENS, name, eyes)
        if not fit(stage, given.folder, part, part.parameters(), step) or name == given.only:
            break


def resume(file: Path, part: Any) -> None:
    """Take over what an earlier stage has reached, if it has run."""
    if file.exists():
        part.load_state_dict(torch.load(file, map_location="cpu", weights_only=True)["model"])


if __name__ == "__main__":
    main()
