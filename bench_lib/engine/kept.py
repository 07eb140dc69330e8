"""Saved memories of a run: one folder per episode and completed session, replaced atomically."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench_lib import paths
from bench_lib.content import digest
from bench_lib.engine.conditions import Episode
from bench_lib.errors import BenchError
from bench_lib.exchange import Form
from bench_lib.measure import counting
from bench_lib.memories.method import Method
from bench_lib.state.packs import PACKS, Shelf, sweep

Keep = Literal["last", "all", "none"]


@dataclass(frozen=True)
class States:
    """`keep_which` says which states of an episode stay; one above `limit_bytes` is not saved.

    Without a saved state a trajectory is observed again from its start when a run is resumed.
    `source` are the kept states of another run, from which every episode must begin. States of an
    episode share packs (see `state.packs`): each writes what is new. In another `form` than
    `exact` the stream goes on from what was saved, so that an answer does not depend on whether the
    run was resumed.
    """

    folder: Path
    keep_which: Keep = "last"
    limit_bytes: int = 512 * 2**20
    source: Path | None = None
    form: Form = "exact"

    def keep(self, episode: Episode, trunk: dict[str, Any], method: Method) -> dict[str, Any]:
        """Save the method after the session at `trunk["position"] - 1`.

        Returns bytes: `exact` of the memory, `on_disk` of the state with all it refers to,
        `written` now; the last two are 0 for a memory above the limit. Nothing where none is kept.
        """
        exact = sum(method.state_bytes().values())
        found = {"form": self.form, "exact": exact, "on_disk": 0, "written": 0}
        if self.keep_which == "none":
            return {}
        if exact > self.limit_bytes:
            return found
        home = self._home(episode, self.folder)
        final = home / f"{trunk['position']:04d}"
        temporary = home / f".{final.name}.{os.getpid()}"
        shutil.rmtree(temporary, ignore_errors=True)
        before = max(home.glob("[0-9]*"), default=None)
        with counting(alone=True) as counts:
            method.save(temporary, Shelf(home / PACKS, before, self.form))
        (temporary / "trunk.json").write_text(json.dumps(trunk))
        shutil.rmtree(final, ignore_errors=True)
        temporary.replace(final)
        if self.keep_which == "last":
            for older in home.iterdir():
                if older not in (final, home / PACKS):
                    shutil.rmtree(older, ignore_errors=True)
        sweep(home / PACKS, home.glob("[0-9]*"))
        if self.form != "exact":
            method.load(final)
        found["on_disk"] = counts["state_bytes_on_disk"]
        return {**found, "written": counts["state_bytes_written"]}

    def newest(self, episode: Episode, method: Method) -> dict[str, Any] | None:
        """Load the latest state from which all asks of the episode can be reached; its trunk.

        Raises:
            BenchError: there is a `source`, and it does not hold the state right before the asks,
                or an older version kept it.
        """
        first = min(episode.feed(ask.probe.session).position for ask in episode.asks)
        home = self._home(episode, self.source or self.folder)
        if self.source and first and not (home / f"{first:04d}").exists():
            raise BenchError(
                f"{paths.short(self.source.parent)} keeps no state of {episode.trajectory.id} "
                f"after session {first}; run it again with states: all"
            )
        found = sorted(home.glob("[0-9]*"), reverse=True) if home.exists() else []
        for folder in found:
            if int(folder.name) <= first:
                trunk = json.loads((folder / "trunk.json").read_text())
                if "spent_s" not in trunk:
                    # Kept before all work was timed: times that go on from it would lack some.
                    if self.source:
                        raise BenchError(
                            f"{paths.short(folder)} was kept by an older version, which did not "
                            f"time all work; run {self.source.parent.name} again with states: all"
                        )
                    continue
                method.load(folder)
                return {**trunk, "size": tuple(trunk["size"]) if trunk["size"] else None}
        return None

    def _home(self, episode: Episode, root: Path) -> Path:
        return root / digest([episode.trajectory.id, episode.id], 16)
