"""Two small classifiers: a shallow tree and a logistic model, both blind to how common a class is.

Each takes rows `x` `[rows, columns]` and `y` `[rows]` of 0 and 1, weighs both classes alike, and
gives a function from rows to the chance of 1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Rows = NDArray[np.float64]
Model = Callable[[Rows], Rows]
Learner = Callable[[Rows, NDArray[np.bool_]], Model]

DEPTH = 3
_CUTS = 32
_LEAST = 5
"""Rows that each side of a split needs."""
_RIDGE = 1.0


def tree(x: Rows, y: NDArray[np.bool_]) -> Model:
    """A tree of `DEPTH` levels that splits at quantiles by Gini impurity."""
    weight = _weights(y)
    cuts = [np.unique(np.quantile(column, np.linspace(0, 1, _CUTS)[:-1])) for column in x.T]
    binned = np.stack([np.searchsorted(c, column) for c, column in zip(cuts, x.T, strict=True)], 1)
    root = _grow(binned, y, weight, np.arange(len(y)), DEPTH)

    def predict(rows: Rows) -> Rows:
        placed = np.stack(
            [np.searchsorted(c, column) for c, column in zip(cuts, rows.T, strict=True)], 1
        )
        out = np.empty(len(rows))
        _descend(root, placed, np.arange(len(rows)), out)
        return out

    return predict


_Node = float | tuple[int, int, "_Node", "_Node"]
"""A leaf's chance, or column, bin, and the nodes of rows up to that bin and beyond."""


def _weights(y: NDArray[np.bool_]) -> Rows:
    each = np.array([1 / max(1, int((~y).sum())), 1 / max(1, int(y.sum()))])
    return each[y.astype(int)]


def _grow(
    binned: NDArray[np.intp], y: NDArray[np.bool_], weight: Rows, rows: NDArray[np.intp], depth: int
) -> _Node:
    total, ones = weight[rows].sum(), weight[rows][y[rows]].sum()
    leaf = float(ones / total)
    if not depth or not 0 < leaf < 1:
        return leaf
    best: tuple[float, int, int] = (total * leaf * (1 - leaf) - 1e-9, -1, 0)
    for column in range(binned.shape[1]):
        at = binned[rows, column]
        n = np.bincount(at, minlength=_CUTS)
        w = np.bincount(at, weight[rows], _CUTS).cumsum()[:-1]
        p = np.bincount(at, weight[rows] * y[rows], _CUTS).cumsum()[:-1]
        up_to = n.cumsum()[:-1]
        fits = (up_to >= _LEAST) & (len(rows) - up_to >= _LEAST)
        if not fits.any():
            continue
        w, p, at_cut = w[fits], p[fits], np.flatnonzero(fits)
        impure = p * (1 - p / w) + (ones - p) * (1 - (ones - p) / (total - w))
        i = int(impure.argmin())
        if impure[i] < best[0]:
            best = (float(impure[i]), column, int(at_cut[i]))
    _, column, cut = best
    if column < 0:
        return leaf
    low = binned[rows, column] <= cut
    below, above = (_grow(binned, y, weight, rows[side], depth - 1) for side in (low, ~low))
    return column, cut, below, above


def _descend(node: _Node, binned: NDArray[np.intp], rows: NDArray[np.intp], out: Rows) -> None:
    if isinstance(node, float):
        out[rows] = node
        return
    column, cut, below, above = node
    low = binned[rows, column] <= cut
    _descend(below, binned, rows[low], out)
    _descend(above, binned, rows[~low], out)


def logistic(x: Rows, y: NDArray[np.bool_]) -> Model:
    """A logistic model with a ridge, on standardised columns."""
    mean, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    z = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    weight, sign = _weights(y) * len(y) / 2, np.where(y, 1.0, -1.0)

    def loss(b: Rows) -> tuple[float, Rows]:
        margin = sign * (z @ b)
        slope = -weight * sign * expit(-margin)
        ridge = np.append(b[:-1], 0.0)
        value = (weight * np.logaddexp(0, -margin)).sum() + _RIDGE / 2 * ridge @ ridge
        return float(value), z.T @ slope + _RIDGE * ridge

    b = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    return lambda rows: expit((rows - mean) / scale @ b[:-1] + b[-1])


FOLDS = 10


def columns(table: pd.DataFrame, groups: Collection[str]) -> list[str]:
    """The columns `group:name` of some groups."""
    return [c for c in table.columns if ":" in c and c.partition(":")[0] in groups]


def guesses(
    table: pd.DataFrame, groups: Collection[str], learner: Learner, folds: int = FOLDS
) -> pd.Series:
    """The chance of `right` in each row, learnt from the rows of other trajectories and its task.

    `groups` are the groups of columns that are used. NaN where the others show one class only.
    """
    names = columns(table, groups)
    found = pd.Series(np.nan, table.index)
    for _, own in table.groupby("task", sort=False):
        x = own[names].to_numpy(np.float64)
        x = x[:, x.min(0) < x.max(0)]
        y = own["right"].to_numpy(bool)
        fold = pd.factorize(own["trajectory"])[0] % folds
        for at in np.unique(fold):
            train = fold != at
            if x.size and y[train].any() and not y[train].all():
                found[own.index[~train]] = learner(x[train], y[train])(x[~train])
    return found
