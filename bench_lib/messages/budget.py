"""A limit on what a run may spend at an endpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench_lib.messages.chat import BudgetSpent


@dataclass
class Budget:
    """Counts requests and money; refuses the request that would pass a limit (0 is no limit).

    Every request sent counts, failed tries too. What a request will cost is not known before its
    reply, so each one under way is reckoned as dear as the dearest so far: only the first requests,
    sent together, can pass the limit, by their own cost. Prices are per million tokens.
    """

    max_calls: int = 0
    max_cost: float = 0.0
    price_in: float = 0.0
    price_out: float = 0.0
    calls: int = 0
    cost: float = 0.0
    _dearest: float = field(default=0.0, repr=False)
    _under_way: int = field(default=0, repr=False)
    _unpriced: bool = field(default=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @contextmanager
    def request(self) -> Iterator[dict[str, int]]:
        """Surrounds one request; the block puts its usage into the dictionary it is given.

        Raises:
            BudgetSpent: before the block is entered.
        """
        usage: dict[str, int] = {}
        with self._lock:
            if self.max_calls and self.calls >= self.max_calls:
                raise BudgetSpent(f"the limit of {self.max_calls} calls is reached")
            if self.max_cost and self._unpriced:
                raise BudgetSpent(
                    "the server tells no token counts, so max_cost cannot be kept; use max_calls"
                )
            expected = self.cost + (self._under_way + 1) * self._dearest
            if self.max_cost and (self.cost >= self.max_cost or expected > self.max_cost):
                raise BudgetSpent(
                    f"{self.cost:.4f} of max_cost {self.max_cost:g} is spent after {self.calls} "
                    f"calls; the next could cost {self._dearest:.4f}"
                )
            self.calls += 1
            self._under_way += 1
        try:
            yield usage
            self._unpriced = not {"prompt_tokens", "completion_tokens"} <= usage.keys()
        finally:
            with self._lock:
                price = self.price(usage)
                self.cost += price
                self._dearest = max(self._dearest, price)
                self._under_way -= 1

    def price(self, usage: Mapping[str, int]) -> float:
        """What a reply of that usage costs."""
        return (
            usage.get("prompt_tokens", 0) * self.price_in
            + usage.get("completion_tokens", 0) * self.price_out
        ) / 1e6
