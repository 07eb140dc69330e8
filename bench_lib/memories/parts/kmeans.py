"""Weighted k-means as Flash-VStream runs it (arXiv 2506.23825, `kmeans_ordered` of the release).

Randomness comes in from outside, so that it can be part of a memory's state.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def clustered(
    points: Tensor,
    weights: Tensor,
    clusters: int,
    random: np.random.Generator,
    iterations: int = 10,
    tolerance: float = 1e-4,
) -> Tensor:
    """Labels `[n]` of points `[n, d]`, numbered without gaps.

    Seeds are distinct points drawn without replacement; a cluster that loses all its points gets a
    drawn point for its centre; it ends when the centres have moved by less than `tolerance` in sum.
    Where there are fewer distinct points than clusters, each is a cluster.
    """
    distinct = torch.unique(points, dim=0)
    if len(distinct) < clusters:
        return nearest(points, distinct)
    seeds = torch.from_numpy(random.permutation(len(distinct))[:clusters]).to(points.device)
    centres = distinct[seeds]
    for _ in range(iterations):
        labels = nearest(points, centres)
        moved, mass = means(points, weights, labels, clusters)
        for lost in (mass == 0).nonzero()[:, 0].tolist():
            moved[lost] = points[int(random.integers(len(points)))]
        if (centres - moved).norm(dim=1).sum() < tolerance:
            break
        centres = moved
    return labels.unique(return_inverse=True)[1]


def nearest(points: Tensor, centres: Tensor) -> Tensor:
    """For each point `[n, d]` the nearest centre of `[k, d]`, the first of equally near ones."""
    apart = points.pow(2).sum(1, keepdim=True) + centres.pow(2).sum(1) - 2 * points @ centres.T
    return apart.argmin(1)


def means(points: Tensor, weights: Tensor, labels: Tensor, clusters: int) -> tuple[Tensor, Tensor]:
    """Weighted means `[k, d]` of the members and their weight `[k]`; zeros where there are none."""
    member = torch.nn.functional.one_hot(labels, clusters).T.to(points.dtype) * weights
    mass = member.sum(1)
    return member @ points / mass.clamp(min=torch.finfo(points.dtype).tiny)[:, None], mass
