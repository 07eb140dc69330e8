"""Replies that could not be used, by kind, each with its denominator."""

from __future__ import annotations

import pandas as pd

from bench_lib.replies.parse import FAILURES
from bench_lib.schema import SCORABLE
from bench_lib.score.instances import Instances

ALL = "All tasks"
STATUSES = ("ok", "repaired", "unparsed", "refused", "error", "not_run")


def format_failures(data: Instances) -> pd.DataFrame:
    """A row per task that was asked and one for all.

    `rate_pct` is unparsed replies over `scored` ones (in a complete run these are the benchmark's
    5,371). `cut` counts replies that reached their length limit, readable or not. The columns
    named like `bench_lib.replies.parse.FAILURES` split the unparsed ones by reason.
    """
    rows = data.rows.assign(status=pd.Categorical(data.rows["status"], list(STATUSES)))
    why = rows["why"].where(rows["status"] == "unparsed", "")
    rows = rows.assign(why=why.where(why.isin(["", *FAILURES]), "other reason"))
    codes = [task.code for task in data.bench.tasks if (rows["task"] == task.code).any()]
    out = []
    for name in [*codes, ALL]:
        own = rows if name == ALL else rows[rows["task"] == name]
        statuses = own["status"].value_counts()
        reasons = own["why"].value_counts()
        scored = int(sum(statuses[s] for s in SCORABLE))
        out.append(
            {
                "group": name,
                "expected": len(own),
                "scored": scored,
                "refused_pct": 100 * statuses["refused"] / scored if scored else float("nan"),
                "rate_pct": 100 * statuses["unparsed"] / scored if scored else float("nan"),
                **{status: int(statuses[status]) for status in STATUSES},
                "cut": int(own["cut"].sum()),
                **{reason: int(reasons.get(reason, 0)) for reason in FAILURES},
                "other reason": int(reasons.get("other reason", 0)),
            }
        )
    return pd.DataFrame(out)


def judge_failures(data: Instances) -> pd.DataFrame:
    """Passed probes without a judge's score, by task and reason."""
    rows = data.adaptive
    missing = rows[rows["unjudged"]]
    counts = missing.groupby(["task", "judge_error"], sort=False, observed=True).size()
    return counts.rename("count").reset_index()
