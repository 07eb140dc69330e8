"""Runs that were made again with another seed: what the items vary, and what sampling does."""

from __future__ import annotations

import pandas as pd

from bench_lib.compare.job import Comparison
from bench_lib.compare.tables import dagger
from bench_lib.content import digest
from bench_lib.readings.material import Material
from bench_lib.report.tables import Cell, Row, Table
from bench_lib.schema import KEY
from bench_lib.score import stats

PARTS = {"questions": "correct", "decisions": "decided"}
"""What is compared item by item: choices, and decisions of probes with a polarity."""


def repeats(job: Comparison) -> Table:
    """Item and sampling variance apart, for each group of runs that differ in their seed alone."""
    title = "Runs that differ in their seed alone"
    rows = []
    for labels in groups(job):
        for part, column in PARTS.items():
            scores = shared(job, labels, column)
            if len(scores) < 2:
                continue
            found = stats.repeats(scores.to_numpy(dtype=float))
            temperature = job.materials[labels[0]].params.temperature
            texts = (
                f"{100 * found.mean:.2f}", f"{100 * min(found.runs):.1f} to "
                f"{100 * max(found.runs):.1f}", f"{100 * found.item_sd:.1f}",
                f"{100 * found.sampling_sd:.1f}", f"{100 * found.consistent:.1f}",
                f"{100 * found.consensus:.2f}", f"{found.n:,}",
            )  # fmt: skip
            head = (
                Cell(labels[0] + dagger(job, labels[0], "run"), f"temperature {temperature:g}"),
                Cell(part),
                Cell(f"{found.k}"),
            )
            rows.append(Row((*head, *map(Cell, texts))))
    if not rows:
        absent = f"{title}: none; give runs of several seeds to part item from sampling variance."
        return Table(title, (), (), absent=absent)
    columns = (
        "first of the runs", "of", "runs", "mean [%]", "lowest to highest", "item SD [points]",
        "sampling SD [points]", "all agree [%]", "majority [%]", "items",
    )  # fmt: skip
    note = (
        "On items that all of the runs have scored. SDs are of a single item's score: divided by "
        "the root of the items they are the error of one run, from the choice of items and from "
        "sampling."
    )
    return Table(title, columns, tuple(rows), note, texts=2)


def groups(job: Comparison) -> list[list[str]]:
    """Labels of runs that are the same but for their seed, two or more each."""
    found: dict[str, list[str]] = {}
    for label, material in job.materials.items():
        found.setdefault(_alike(material), []).append(label)
    return [labels for labels in found.values() if len(labels) > 1]


def _alike(material: Material) -> str:
    own = {k: v for k, v in material.manifest.get("identity", {}).items() if k != "seed"}
    return digest(own, 16)


def shared(job: Comparison, labels: list[str], column: str) -> pd.DataFrame:
    """Scores of the items `[n, runs]` that every run has."""
    parts = []
    for label in labels:
        rows = job.runs[label].choice if column == "correct" else job.runs[label].adaptive
        parts.append(rows.set_index(KEY)[column].rename(label))
    return pd.concat(parts, axis=1).dropna()
