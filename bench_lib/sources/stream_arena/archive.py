"""One video out of the release's tar file, and nothing else.

An archive comes from outside, so nothing in it is taken at its word: the names are compared with
the one that is expected, links, devices, sparse files and paths that lead out are refused, and only
the bytes of the expected member are ever copied. No path of the archive is used to write.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from bench_lib import paths
from bench_lib.errors import BenchError

MOST_MEMBERS = 64
HEADER_BYTES = 2**20
"""Longest header that is read; one of a release has a few hundred bytes."""
COPY_BYTES = 2**22


class Refused(Exception):
    """Why an archive is not used."""


@dataclass(frozen=True)
class Archive:
    """A tar file with its video at `[offset, offset + nbytes)`, and the digest it must have."""

    path: Path
    offset: int
    nbytes: int
    sha256: str
    stamp: tuple[int, int]
    """Its size and modification time when it was looked at."""

    @property
    def key(self) -> str:
        """Changes with the archive; what a manifest vouches for keeps its key on every machine."""
        return self.sha256[:16] or hashlib.sha256(repr(self.stamp).encode()).hexdigest()[:16]


class _Heads:
    """A file that only gives short pieces: reading headers must not fill the memory."""

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self._file = file.seek, file.tell, file

    def read(self, n: int = -1) -> bytes:
        if not 0 <= n <= HEADER_BYTES:
            raise Refused(f"has a header of {n} bytes, more than {HEADER_BYTES}")
        return self._file.read(n)


def look(path: Path, name: str, expected: dict[str, Any] | None) -> Archive:
    """Find `NAME/NAME.mp4` in a tar file. Raises Refused, or OSError where it cannot be read.

    `expected` holds the archive's `bytes` and `sha256` where a manifest lists it.
    """
    status = path.stat()
    if expected and status.st_size != expected["bytes"]:
        told = f"has {status.st_size} bytes, the manifest says {expected['bytes']}"
        raise Refused(f"{told}; download it again")
    with path.open("rb") as file:
        try:
            member = _member(file, name)
        except (tarfile.TarError, ValueError, EOFError) as error:
            raise Refused(f"is no readable tar file ({error}); download it again") from None
    if member.offset_data + member.size > status.st_size:
        raise Refused(f"is cut short within {member.name}; download it again")
    if not member.size:
        raise Refused(f"holds an empty {member.name}; download it again")
    return Archive(
        path,
        member.offset_data,
        member.size,
        expected["sha256"] if expected else "",
        (status.st_size, status.st_mtime_ns),
    )


def _member(file: BinaryIO, name: str) -> tarfile.TarInfo:
    wanted, found = f"{name}/{name}.mp4", None
    with tarfile.open(fileobj=_Heads(file), mode="r:") as tar:  # type: ignore[call-overload]
        for n, member in enumerate(tar):
            if n >= MOST_MEMBERS:
                raise Refused(f"holds more than {MOST_MEMBERS} members, where one is expected")
            told = f"holds {member.name[:80]!r}"
            where = PurePosixPath(member.name)
            if where.is_absolute() or ".." in where.parts or "\\" in member.name:
                raise Refused(f"{told}, a path that leads out of it; do not trust this archive")
            if not (member.isreg() or member.isdir()) or member.issparse():
                reason = "a link, a device or a sparse file; do not trust this archive"
                raise Refused(f"{told}, {reason}")
            if member.isreg() and str(where) == wanted:
                if found:
                    raise Refused(f"{told} twice; do not trust this archive")
                found = member
    if found is None:
        raise Refused(f"does not hold {wanted!r}")
    return found


def extract(archive: Archive, target: Path) -> None:
    """Copy the video to `target`, whole or not at all; nothing where it is there.

    Raises:
        Refused: the archive has changed, or has not the content that the manifest says.
        BenchError: there is no room for it.
    """
    if target.exists():
        return
    with archive.path.open("rb") as file:
        status = os.fstat(file.fileno())
        if (status.st_size, status.st_mtime_ns) != archive.stamp:
            raise Refused("has changed since the source was loaded; load it again")
        if archive.sha256:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != archive.sha256:
                told = f"has the SHA-256 {digest}, the manifest says {archive.sha256}"
                raise Refused(f"{told}; download it again")
        target.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target.parent).free
        if free < archive.nbytes:
            raise BenchError(
                f"{paths.short(archive.path)}: its video has {archive.nbytes / 2**30:.1f} GiB, the "
                f"cache has {free / 2**30:.1f} GiB left; move it with BENCH_CACHE"
            )
        part = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            file.seek(archive.offset)
            left = archive.nbytes
            with part.open("wb") as out:
                while left and (piece := file.read(min(left, COPY_BYTES))):
                    left -= out.write(piece)
            if left:
                raise Refused("ends before its video does; download it again")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
