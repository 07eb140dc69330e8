"""Methods whose published scores belong to weights trained for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from bench_lib import backbones
from bench_lib.errors import BenchError, nearest
from bench_lib.memories.method import Method

Weights = Literal["tuned", "stock"]


@dataclass(kw_only=True)
class Tuned(Method):
    """Base of methods with weights of their own.

    `weights: tuned` asks for the published checkpoint and refuses any other model; `stock` runs the
    method's memory on whatever model is served, and every report says so. The models this workbench
    makes itself (tiny ones, rehearsals of a shape) were trained for no method: they serve either.
    """

    needs_weights: ClassVar[bool] = True
    checkpoint: ClassVar[str] = ""

    weights: Weights = "tuned"

    def __post_init__(self) -> None:
        known = ("tuned", "stock")
        if self.weights not in known:
            raise BenchError(f"weights is {self.weights!r}; {nearest(self.weights, known)}")

    def attach(self, model: Any) -> Self:
        """See `Method.attach`; raises BenchError for a model not trained for the method."""
        super().attach(model)
        if self.weights == "tuned" and not self.trained and not backbones.homemade(model.id):
            raise BenchError(
                f"{self.name} needs weights trained for it, and {model.id} has none: give "
                f"backbone {self.checkpoint}, or a folder with its files; or ask for its memory on "
                "a stock model with -y 'method_args: {weights: stock}'"
            )
        return self

    @property
    def trained(self) -> bool:
        """Whether the model that serves it is its own checkpoint."""
        return getattr(self.served, "tuned_for", "") == self.name

    @property
    def caveat(self) -> str:
        """See `Method.caveat`."""
        if self.served is None or self.trained:
            return ""
        return (
            f"{self.name} ran on {self.served.id}, which was not trained for it: its scores are "
            f"not those of the published system ({self.checkpoint})"
        )
