"""Text files that people wrote or exported: how they are encoded, the records and names in them."""

from unicodedata import normalize


class Unreadable(ValueError):
    """Why a file is not read: what is wrong with it, with the line where there is one."""


def composed(name: str) -> str:
    """A name in the Unicode form (NFC) in which names are compared; macOS stores another."""
    return normalize("NFC", name)


def folded(name: str) -> str:
    """What names that differ in case or Unicode form alone have in common."""
    return composed(composed(name).casefold())
