"""Baselines that see no video: each is fitted on some worlds and tested on others."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from bench_lib.schema import Candidate

Worlds = Sequence[Sequence[Candidate]]


def mcq(worlds: Worlds) -> list[Candidate]:
    """The candidates with options."""
    return [c for world in worlds for c in world if c.options]


def halves(worlds: Worlds) -> tuple[tuple[Worlds, Worlds], tuple[Worlds, Worlds]]:
    """Two ways to fit on one half of the worlds and test on the other."""
    one, two = worlds[::2], worlds[1::2]
    return (one, two), (two, one)


def letter_prior(worlds: Worlds) -> float:
    """Accuracy of the letter that was most often right."""
    hits = n = 0
    for fit, test in halves(worlds):
        best = Counter(c.answer for c in mcq(fit)).most_common(1)[0][0]
        hits += sum(c.answer == best for c in mcq(test))
        n += len(mcq(test))
    return hits / n


def _features(question: str, option: str) -> list[str]:
    """Words of an option, alone and with the form and the words of the question."""
    form = " ".join(question.split()[:5])
    words = re.findall(r"\w+", option)
    asked = set(re.findall(r"\w+", question))
    shared = f"shared {len(asked & set(words))}"
    pairs = [f"{w} {q}" for w in words for q in asked]
    return [option[-1], *words, *(f"{form}:{w}" for w in words), shared, option, *pairs]


def bag_of_words(worlds: Worlds) -> float:
    """Accuracy of naive Bayes over the text of question and options."""
    hits = n = 0
    for fit, test in halves(worlds):
        weights = _weights(mcq(fit))
        for c in mcq(test):
            scores = {
                o.id: sum(weights.get(f, 0.0) for f in _features(c.question, o.text))
                for o in c.options
            }
            hits += max(scores, key=lambda k: scores[k]) == c.answer
            n += 1
    return hits / n


def _weights(candidates: list[Candidate]) -> dict[str, float]:
    """Log odds of a feature in right against wrong options, for features seen often enough."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for c in candidates:
        for option in c.options:
            target = right if option.id == c.answer else wrong
            target.update(_features(c.question, option.text))
    yes, no = sum(right.values()) + 1, sum(wrong.values()) + 1
    return {
        f: math.log((right[f] + 1) / yes) - math.log((wrong[f] + 3) / no)
        for f in right | wrong
        if right[f] + wrong[f] >= 8
    }


def by_number(worlds: Worlds, measure: object) -> float:
    """Balanced accuracy of the best threshold on one number of a probe, either way round."""
    rates = []
    for fit, test in halves(worlds):
        seen = [(measure(p), p.polarity) for c in _windows(fit) for p in c.probes]  # type: ignore[operator]
        best = max(
            ((cut, sign) for cut in sorted({v for v, _ in seen}) for sign in (1, -1)),
            key=lambda rule: _balanced(seen, *rule),
        )
        told = [(measure(p), p.polarity) for c in _windows(test) for p in c.probes]  # type: ignore[operator]
        rates.append(_balanced(told, *best))
    return sum(rates) / len(rates)


def _windows(worlds: Worlds) -> list[Candidate]:
    return [c for world in worlds for c in world if any(p.interval for p in c.probes)]


def _balanced(seen: list[tuple[float, object]], cut: float, sign: int) -> float:
    yes = [v * sign <= cut * sign for v, polarity in seen if polarity == "positive"]
    no = [v * sign > cut * sign for v, polarity in seen if polarity == "negative"]
    return (sum(yes) / len(yes) + sum(no) / len(no)) / 2
