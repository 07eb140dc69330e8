"""A small third benchmark: two tasks with a key, scored like APM-Bench's."""

from bench_lib.sources.quiz import QUIZ

from bench_lib.benches.apm import Keyed

BENCH = Keyed.of(QUIZ)
