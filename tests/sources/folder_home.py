"""Folders of one's own videos, made of links to one short film."""

from __future__ import annotations

from pathlib import Path

import av

from bench_lib import sources
from bench_lib.schema import Dataset

SECONDS = 2.0


def fill(home: Path, film: Path, *names: str) -> Path:
    """A folder with that film under each name; a name that holds a text has it after `=`."""
    home.mkdir(parents=True, exist_ok=True)
    for name in names:
        name, given, text = name.partition("=")
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        if given:
            (home / name).write_text(text, encoding="utf-8")
        else:
            (home / name).hardlink_to(film)
    return home


def stamped(path: Path, film: Path, created: str, key: str = "creation_time") -> Path:
    """The film copied with a time of recording."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        av.open(str(film)) as old,
        av.open(str(path), "w", options={"movflags": "use_metadata_tags"}) as new,
    ):
        new.metadata[key] = created
        (track,) = old.streams.video
        stream = new.add_stream_from_template(track)
        for packet in old.demux(track):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)
    return path


def load(home: Path, knobs: str = "") -> Dataset:
    """The folder above as a source."""
    return sources.load(f"folder{knobs}", str(home.parent))


def told(data: Dataset, what: str) -> list[tuple[str, str]]:
    """What was taken, of a kind."""
    return [(one.value, one.how) for one in data.taken if one.what.endswith(what)]


def ids(data: Dataset) -> list[str]:
    """Sessions of the first trajectory."""
    return [session.id for session in data.trajectories[0].sessions]
