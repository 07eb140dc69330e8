"""What makes two runs the same run: parameters, versions, and the data by content.

Data is known by digests of its parts (`contents`), so that the same folder elsewhere is the same
data, another one in its place is not, and a difference has a name. What was added to the data since
separates nothing: a further trajectory, or a further question where questions are independent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any

from bench_lib import __version__, paths, sources
from bench_lib.content import digest
from bench_lib.params.evaluate import EvalParams
from bench_lib.schema import Record, Session, Trajectory
from bench_lib.tasks import bench_of

FORMAT = 2
"""Of what a run writes. A run of another form is read and marked, but never gone on with."""
NOT_IDENTITY = (
    "device", "shard", "workers", "data_root", "store_gib", "limit", "tasks",
    "trajectories", "name", "question", "at", "probe_every_s", "repeat",
)  # fmt: skip
"""Parameters that do not change what an answer is; all others, and the versions, identify a run."""
VERSIONS = ("torch", "transformers", "decord", "av")
Parts = dict[str, dict[str, str]]
"""Digests by part (`session day1`, `candidate q1`) and field."""
Contents = dict[str, Parts]
"""Parts by trajectory."""


def identity(params: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a run, beside its data.

    Of a server's settings those count on which its replies depend, not how it is reached; its
    address counts only where no revision names its weights.
    """
    own = {key: value for key, value in params.items() if key not in NOT_IDENTITY}
    if own.get("condition") != "recent_sessions":
        own.pop("recent", None)
    if str(own.get("backbone", "")).startswith("endpoint:"):
        from bench_lib.messages.settings import SHAPING

        given = own.get("backbone_args") or {}
        own["backbone_args"] = {key: given[key] for key in sorted(given) if key in SHAPING}
        if given.get("revision"):
            own["backbone"] = own["backbone"].partition("@http")[0]
    return as_kept({**own, "versions": versions()})


def same(own: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether two identities are one.

    A parameter that one of them does not know had its default there: one that is added to the bench
    later separates runs only where it is used.
    """
    default = as_kept(EvalParams().as_dict())
    return all(
        own.get(key, default.get(key)) == asked.get(key, default.get(key))
        for key in {**own, **asked}
    )


def as_kept(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values as a manifest holds them."""
    return json.loads(paths.homeless(json.dumps(values, default=str)))


def versions() -> dict[str, str]:
    """Versions of the packages that can change a number; `absent` where one is not installed."""
    found = {"bench_lib": __version__}
    for package in VERSIONS:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def contents(trajectories: Iterable[Trajectory]) -> Contents:
    """What each trajectory is known by; where questions share a dialogue, by their order too."""
    return {trajectory.id: _parts(trajectory) for trajectory in trajectories}


def about(known: Contents, present: Contents) -> bool:
    """Whether a run that knows the one is about the other: no difference, and something in common.

    A run that knows nothing yet is about anything.
    """
    return not known or (bool(known.keys() & present.keys()) and not differs(known, present))


def differs(known: Contents, present: Contents) -> str:
    """The first part of `known` that is another one in `present`; empty where there is none.

    A trajectory or a candidate that only one of them has is no difference.
    """
    for name in known.keys() & present.keys():
        for part, fields in known[name].items():
            other = present[name].get(part)
            if other is None:
                continue
            for field in {**fields, **other}:
                if fields.get(field) != other.get(field):
                    return f"trajectory {name!r}: {part}: {field}"
    return ""


def merged(known: Contents, present: Contents) -> Contents:
    """Both, of a run that has been asked about the one and is asked about the other."""
    return {name: {**known.get(name, {}), **parts} for name, parts in (known | present).items()}


def _parts(trajectory: Trajectory) -> Parts:
    whole = {
        "sessions": digest([session.id for session in trajectory.sessions]),
        "between": digest([session.id for session in trajectory.between]),
    }
    if any(bench_of(candidate.task).dialogue == "shared" for candidate in trajectory.candidates):
        whole["candidates"] = digest([candidate.id for candidate in trajectory.candidates])
    parts = {"as a whole": whole}
    for session in (*trajectory.sessions, *trajectory.between):
        parts[f"session {session.id}"] = _session(trajectory.source, session)
    for candidate in trajectory.candidates:
        parts[f"candidate {candidate.id}"] = _fields(candidate)
    return parts


def _session(source: str, session: Session) -> dict[str, str]:
    videos = [sources.recorded(source, span.file) for span in session.spans]
    spans = [(span.start_s, span.end_s) for span in session.spans]
    return {
        **_fields(session.model_copy(update={"spans": ()})),
        "spans": digest(spans),
        "videos": digest(videos),
    }


def _fields(record: Record) -> dict[str, str]:
    """Digests of what is not as it is by default: a field added later separates nothing."""
    fields = record.model_dump(mode="json", exclude_defaults=True)
    return {name: digest(value) for name, value in fields.items()}
