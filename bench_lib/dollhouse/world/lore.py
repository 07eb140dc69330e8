"""The fact store: what can be known of things and cannot be seen.

Each thing has a price and a maker, each maker a town. One document a fact, for a search tool. The
facts are the same in every household, so that one store serves a whole set.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench_lib import paths
from bench_lib.dollhouse.world.arena_sentences import Lives, Made, Price
from bench_lib.dollhouse.world.grammar import Item, Sentence, value
from bench_lib.dollhouse.world.words import COLOURS, KINDS, MAKERS, NUMBERS, TOWNS
from bench_lib.search import providers


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


def lore(items: Iterable[Item]) -> Lore:
    """The facts about some things."""
    prices, makers = {}, {}
    for item in sorted(items):
        rng = np.random.default_rng((COLOURS.index(item.colour), KINDS.index(item.kind), 17))
        prices[item] = int(rng.choice(NUMBERS))
        makers[item] = str(rng.choice(MAKERS))
    rng = np.random.default_rng(17)
    return Lore(prices, makers, {maker: str(rng.choice(TOWNS)) for maker in MAKERS})


def store() -> Path:
    """The facts about all things there are, as a file in the cache; written once."""
    facts = lore(Item(colour, kind) for colour in COLOURS for kind in KINDS)
    body = "".join(json.dumps(document) + "\n" for document in facts.documents())
    name = f"facts-{hashlib.sha256(body.encode()).hexdigest()[:8]}.jsonl"
    path = paths.cache() / "dollhouse" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(body, encoding="utf-8")
        part.replace(path)
    return path


providers.CORPORA["dollhouse"] = store
