"""StreamArena: a judge says right or wrong of every answer, and alerts must come in time."""

from bench_lib.benches.arena.bench import BENCH

__all__ = ["BENCH"]
