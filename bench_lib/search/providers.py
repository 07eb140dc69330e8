"""Where searches go: a corpus on disk, replies of earlier runs, or the web.

`corpus:FILE` a JSON-lines file of documents (`title`, `text`, `url`), searched offline in full text
of any script; `corpus:dollhouse` what is known of the household's things; `replay:FOLDER` stored
replies alone; `record:FOLDER` the web, each reply stored; `web` Google, with keys from the
environment.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from bench_lib.errors import BenchError
from bench_lib.search.text_index import TextIndex
from bench_lib.search.tools import Provider, Result, SearchError
from bench_lib.texts import records

IMAGE_TOOLS = ("image_search", "crop_search")
FORMS = "corpus:FILE, corpus:dollhouse, replay:FOLDER, record:FOLDER, web"
CORPORA: dict[str, Callable[[], Path]] = {}
"""Collections that the workbench makes itself, by name; whoever makes one adds it here."""


def provider(spec: str) -> Provider | None:
    """The provider that a text names, None for an empty one; BenchError for an unknown form."""
    kind, _, rest = spec.partition(":")
    if not spec:
        return None
    if kind == "corpus" and rest in CORPORA:
        return Corpus(CORPORA[rest]())
    if kind == "corpus" and rest:
        return Corpus(Path(rest).expanduser())
    if kind in ("replay", "record") and rest:
        return Replay(Path(rest).expanduser(), Google() if kind == "record" else None)
    if spec == "web":
        return Google()
    raise BenchError(f"search {spec!r} names no provider; forms: {FORMS}")


class Corpus:
    """A local collection of documents; text search only. Raises BenchError for a bad file."""

    tools = ("text_search",)

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BenchError(f"search corpus {path.name} does not exist")
        self.id = f"corpus-{blake2b(path.read_bytes(), digest_size=6).hexdigest()}"
        try:
            entries = records.entries(path)
        except records.Unreadable as error:
            raise BenchError(f"{path.name} {error}") from None
        self.documents = [_document(path, entry) for entry in entries]
        self._index = TextIndex(
            (str(at), f"{d.title} {d.text}") for at, d in enumerate(self.documents)
        )

    def text(self, query: str, most: int) -> Sequence[Result]:
        """See `Provider.text`; a few more than asked for, since some will be filtered."""
        return [self.documents[int(key)] for key in self._index.search(query, 3 * most)]

    def image(self, jpeg: bytes, most: int) -> Sequence[Result]:
        """A corpus of texts has no pictures."""
        raise SearchError("this search corpus holds no pictures")


def _document(path: Path, entry: records.Entry) -> Result:
    record = entry.value
    if isinstance(record, dict):
        fields = [record.get(name, "") for name in ("title", "text", "url")]
        if fields[1] and all(isinstance(field, str) for field in fields):
            return Result(*fields)
    reason = entry.fault or "a document needs the texts 'title' and 'text'"
    raise BenchError(f"{path.name}, {entry.where}: {reason}")


class Replay:
    """Replies kept by request in a folder; what is not there is asked of `source`, and kept."""

    tools = ("text_search", *IMAGE_TOOLS)

    def __init__(self, folder: Path, source: Provider | None = None) -> None:
        if source is None and not folder.is_dir():
            raise BenchError(f"search replay folder {folder.name} does not exist")
        self.folder, self.source = folder, source
        self.id = f"replay-{folder.name}"

    def text(self, query: str, most: int) -> Sequence[Result]:
        """See `Provider.text`; SearchError where nothing is stored for it."""
        source = self.source
        return self._kept(
            {"query": query, "most": most},
            (lambda: source.text(query, most)) if source else None,
        )

    def image(self, jpeg: bytes, most: int) -> Sequence[Result]:
        """See `Provider.image`; SearchError where nothing is stored for it."""
        source, digest = self.source, blake2b(jpeg, digest_size=16).hexdigest()
        return self._kept(
            {"image": digest, "most": most},
            (lambda: source.image(jpeg, most)) if source else None,
        )

    def _kept(self, request: Mapping[str, Any], ask: Any) -> Sequence[Result]:
        key = blake2b(json.dumps(request, sort_keys=True).encode(), digest_size=12).hexdigest()
        path = self.folder / f"{key}.json"
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            return [Result(**r) for r in stored["results"]]
        if ask is None:
            raise SearchError("no stored reply for this search")
        results = list(ask())
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        record = {"request": request, "results": [asdict(r) for r in results]}
        draft.write_text(json.dumps(record, ensure_ascii=False, indent=1), encoding="utf-8")
        draft.replace(path)
        return results


class Google:
    """Google's text search and its reverse image search, as the paper's runs are restricted to.

    `GOOGLE_API_KEY` and, for text, `GOOGLE_CSE_ID` (Custom Search JSON API; Cloud Vision's web
    detection for images). Keys are sent in a header and appear in no error.
    """

    tools = ("text_search", *IMAGE_TOOLS)
    id = "google"
    TEXT = "https://www.googleapis.com/customsearch/v1"
    IMAGE = "https://vision.googleapis.com/v1/images:annotate"

    def __init__(self, timeout_s: float = 30.0) -> None:
        missing = [k for k in ("GOOGLE_API_KEY", "GOOGLE_CSE_ID") if not os.environ.get(k)]
        if missing:
            raise BenchError(f"web search needs the environment variable {' and '.join(missing)}")
        self.timeout_s = timeout_s

    def text(self, query: str, most: int) -> Sequence[Result]:
        """See `Provider.text`."""
        asked = {"q": query, "num": min(most, 10), "cx": os.environ["GOOGLE_CSE_ID"]}
        items = self._json("GET", self.TEXT, params=asked).get("items") or []
        return [Result(i.get("title", ""), i.get("snippet", ""), i.get("link", "")) for i in items][
            :most
        ]

    def image(self, jpeg: bytes, most: int) -> Sequence[Result]:
        """See `Provider.image`: best guesses and entities, then pages with the picture."""
        content = base64.b64encode(jpeg).decode()
        feature = {"type": "WEB_DETECTION", "maxResults": most}
        body = {"requests": [{"image": {"content": content}, "features": [feature]}]}
        answers = self._json("POST", self.IMAGE, json=body).get("responses") or [{}]
        found = answers[0].get("webDetection") or {}
        guesses = [g.get("label", "") for g in found.get("bestGuessLabels") or []]
        entities = [e.get("description", "") for e in found.get("webEntities") or []]
        names = ", ".join(dict.fromkeys(n for n in (*guesses, *entities) if n))
        results = [Result("Best guess", names)] if names else []
        for page in found.get("pagesWithMatchingImages") or []:
            results.append(Result(page.get("pageTitle", ""), "", page.get("url", "")))
        return results[:most]

    def _json(self, method: str, url: str, **content: Any) -> dict[str, Any]:
        import httpx

        headers = {"X-Goog-Api-Key": os.environ["GOOGLE_API_KEY"]}
        try:
            with httpx.Client(timeout=self.timeout_s) as client:
                reply = client.request(method, url, headers=headers, **content)
        except httpx.HTTPError as error:
            raise SearchError(f"web search: {type(error).__name__}") from None
        if reply.status_code != 200:
            raise SearchError(f"web search: HTTP {reply.status_code}")
        try:
            return dict(reply.json())
        except ValueError:
            raise SearchError("web search: the reply is no JSON") from None
