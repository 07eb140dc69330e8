"""From replies to numbers.

parse, gate                 a reply becomes an answer or a reason; the deterministic gate
cases, judge, verdicts      what a judge is sent, the resumable client, its strict contract
instances, strata           one row per runtime instance, with what makes it hard to remember
aggregate, adaptive         main scores (Eq. 1), decisions, quality after the gate (Eq. 3)
failures, availability      unreadable replies by kind; does a system know what it cannot know
timing, arena, ovo_bench    when it spoke; StreamArena; the rule of OVO-Bench
storage                     bytes per hour of video (Eq. 2)
cells, stats, paired        intervals over clusters, tests, power
compare, published          runs beside runs and beside the papers' rows
shortcuts                   baselines without video
agreement, audit, labels    how far a judge can be trusted
table                       the one shape of score tables
"""
