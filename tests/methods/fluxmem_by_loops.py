"""FluxMem written out in loops over numbers, as slowly and plainly as can be."""

from __future__ import annotations

import numpy as np

Left = dict[frozenset[int], np.ndarray]
"""Vectors that are left of a grid, by the cells that may hold them: members of a cluster that are
equally near its mean (always so for two) are told apart by rounding alone."""


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(float(np.linalg.norm(vector)), 1e-8)


def otsu(values: list[float]) -> float | None:
    """The centre of the bin whose split separates best, or None where none separates."""
    step = 2 / 128
    bins = [min(int(v / step), 127) for v in values]
    best, where = 0.0, None
    for split in range(128):
        low = [(b + 0.5) * step for b in bins if b <= split]
        high = [(b + 0.5) * step for b in bins if b > split]
        if low and high:
            share = len(low) / len(values)
            apart = sum(high) / len(high) - sum(low) / len(low)
            spread = share * (1 - share) * apart**2
            if spread > best * (1 + 1e-9):
                best, where = spread, split
    return None if where is None else (where + 0.5) * step


def otsu_or_median(values: list[float]) -> float:
    inside = [min(max(v, 0.0), 2.0) for v in values]
    found = otsu(inside) if np.var(inside, ddof=1) > 1e-12 else None
    return sorted(inside)[(len(inside) - 1) // 2] if found is None else found


def likeness(these: np.ndarray, those: np.ndarray, rows: int, cols: int) -> list[float]:
    """Best cosine of each cell of `these` `[cells, d]` with 3 x 3 cells of `those`."""
    best = []
    for cell in range(rows * cols):
        row, col = divmod(cell, cols)
        around = [
            float(unit(these[cell]) @ unit(those[r * cols + c]))
            for r in range(max(0, row - 1), min(rows, row + 2))
            for c in range(max(0, col - 1), min(cols, col + 2))
        ]
        best.append(max(around))
    return best


def selected(
    change: list[float] | None, alike: list[float] | None, drop: float
) -> list[bool] | None:
    """Which tokens stay; None where the grid has no neighbour in time."""
    if change is None and alike is None:
        return None
    known = change if change is not None else alike
    keep = [False] * len(known)
    for distance in (change, None if alike is None else [1 - s for s in alike]):
        if distance is not None:
            threshold = otsu_or_median(distance)
            keep = [k or d >= threshold for k, d in zip(keep, distance, strict=True)]
    if alike is not None:
        keep = [k and s <= drop for k, s in zip(keep, alike, strict=True)]
    return keep


def consolidated(tokens: dict[int, np.ndarray], cols: int) -> Left:
    """Merge alike neighbours of one grid."""
    cells = sorted(tokens)
    edges = {}
    for a in cells:
        for b in cells:
            (row_a, col_a), (row_b, col_b) = divmod(a, cols), divmod(b, cols)
            if a < b and abs(row_a - row_b) <= 1 and abs(col_a - col_b) <= 1:
                distance = 1 - float(unit(tokens[a]) @ unit(tokens[b]))
                edges[a, b] = min(max(distance, 0.0), 2.0)
    threshold = otsu(list(edges.values())) if edges else None
    if threshold is None:
        return {frozenset([cell]): vector for cell, vector in tokens.items()}
    cluster = {cell: {cell} for cell in cells}
    for (a, b), distance in edges.items():
        if distance <= threshold and cluster[a] is not cluster[b]:
            joined = cluster[a] | cluster[b]
            for cell in joined:
                cluster[cell] = joined
    left = {}
    for members in {id(c): c for c in cluster.values()}.values():
        mean = np.mean([tokens[cell] for cell in members], axis=0)
        away = {cell: float(((tokens[cell] - mean) ** 2).sum()) for cell in sorted(members)}
        nearest = min(away.values())
        anchors = [cell for cell in away if away[cell] <= nearest * (1 + 1e-4)]
        left[frozenset(anchors)] = mean
    return left


def batch(
    video: np.ndarray, sessions: list[int], lattice: tuple[int, int], short: int, mid: int
) -> list[Left]:
    """What is left of each grid of `video` `[grids, cells, d]`; tiers are given in grids."""
    rows, cols = lattice
    grids = len(video)
    kept = []
    for g in range(grids):
        tokens = dict(enumerate(video[g]))
        if g < grids - short:
            before = g > 0 and sessions[g - 1] == sessions[g]
            after = sessions[g + 1] == sessions[g]
            change = likeness(video[g], video[g - 1], rows, cols) if before else None
            alike = likeness(video[g], video[g + 1], rows, cols) if after else None
            change = None if change is None else [1 - s for s in change]
            keep = selected(change, alike, 0.8)
            tokens = {c: v for c, v in tokens.items() if keep is None or keep[c]}
        if g < grids - short - mid:
            kept.append(consolidated(tokens, cols))
        else:
            kept.append({frozenset([cell]): vector for cell, vector in tokens.items()})
    return kept
