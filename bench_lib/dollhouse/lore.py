"""The fact store: what can be known of a household's things and cannot be seen.

Each thing has a price and a maker, each maker a town. One document a fact, for a search tool.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_lib.dollhouse.arena_sentences import Lives, Made, Price
from bench_lib.dollhouse.grammar import Item, Sentence, value
from bench_lib.dollhouse.words import MAKERS, NUMBERS, TOWNS
from bench_lib.dollhouse.world import World


@dataclass(frozen=True)
class Lore:
    """Prices, makers and towns."""

    prices: dict[Item, int]
    makers: dict[Item, str]
    towns: dict[str, str]

    def documents(self) -> list[dict[str, str]]:
        """`id`, `title` and `text` of each document."""
        facts: list[tuple[str, Sentence]] = []
        facts += [(value("item", i), Price(i, n)) for i, n in self.prices.items()]
        facts += [(value("item", i), Made(i, m)) for i, m in self.makers.items()]
        facts += [(m, Lives(m, t)) for m, t in self.towns.items()]
        return [
            {"id": f"D{at:04d}", "title": title.removeprefix("the "), "text": fact.say()}
            for at, (title, fact) in enumerate(facts)
        ]

    def write(self, path: Path) -> None:
        """The documents as JSON lines."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text("".join(json.dumps(d) + "\n" for d in self.documents()), encoding="utf-8")
        part.replace(path)


def lore(world: World) -> Lore:
    """The facts about a world's things, by its seed."""
    rng = np.random.default_rng((world.seed, 17))
    items = sorted(world.house.singles)
    return Lore(
        {item: int(rng.choice(NUMBERS)) for item in items},
        {item: str(rng.choice(MAKERS)) for item in items},
        {maker: str(rng.choice(TOWNS)) for maker in MAKERS},
    )
