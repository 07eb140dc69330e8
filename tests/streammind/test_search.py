"""Search: boxes and crops, the corpus, stored replies, the web without a network."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from by_contract import ByContract, agent, ask, begin, feed, frame
from PIL import Image

from bench_lib.errors import BenchError
from bench_lib.measure import counting
from bench_lib.search import providers
from bench_lib.search.providers import Corpus, Google, Replay, provider
from bench_lib.search.tools import CENTRE, Result, SearchError, checked_box, crop, relevant
from bench_lib.video.picture import Picture, encoded, picture


class Pictures:
    """A provider that names what it was asked for."""

    id, tools = "pictures", ("text_search", "image_search", "crop_search")

    def __init__(self):
        self.images = []

    def text(self, query, most):
        return [Result(query, f"about {query}"), Result("other", "nothing of it")]

    def image(self, jpeg, most):
        self.images.append(jpeg)
        return [Result("seen", f"picture of {len(jpeg)} bytes")]


def size(jpeg):
    return Image.open(io.BytesIO(jpeg)).size


def ramp():
    """A frame of 200 x 100 whose red is its column and whose green is its row."""
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[..., 0] = np.arange(200)
    pixels[..., 1] = np.arange(100)[:, None]
    return Picture(0.0, encoded(pixels, 720, 95))


def test_a_box_is_a_part_of_the_frame_in_thousandths():
    cut = crop(ramp(), (500, 0, 1000, 500), 720, 95)
    assert size(cut) == (100, 50)
    pixels = np.asarray(Image.open(io.BytesIO(cut)).convert("RGB")).astype(int)
    assert abs(pixels[2, 2, 0] - 102) < 12
    assert abs(pixels[40, 90, 1] - 40) < 12


def test_a_crop_is_at_most_720_pixels_long():
    big = Picture(0.0, encoded(np.zeros((800, 1600, 3), np.uint8), 1600, 50))
    assert size(crop(big, (0, 0, 1000, 1000), 720, 75)) == (720, 360)
    assert size(crop(big, CENTRE, 720, 75)) == (720, 360)


@pytest.mark.parametrize(
    "box", [(500, 0, 400, 900), (0, 5, 900, 9), (0, 0, 0, 0), (1100, 0, 1200, 9)]
)
def test_boxes_upside_down_or_too_small_are_refused(box):
    with pytest.raises(ValueError, match="x1 < x2"):
        checked_box(box)


def test_boxes_are_clamped_to_the_grid():
    assert checked_box((-50, -1, 2000, 990)) == (0, 0, 1000, 990)


def searching(calls, own, anchor="current", **args):
    """The reports after a search worker's calls; the chat."""

    def router(asked):
        found = "search worker" in asked.text
        task = {"kind": "search", "instruction": "what is it?", "anchor": anchor}
        return {"answer": "done"} if found else {"tasks": [task]}

    def search(asked):
        return (
            {"report": "seen", "sources": ["u"]} if "Result 1" in asked.text else {"calls": calls}
        )

    delegate = {"action": "delegate", "brief": {"goal": "g"}}
    chat = ByContract(front=delegate, router=router, search=search)
    method = begin(agent(chat, **args))
    method.stream.provider = own
    feed(method, 0, 20)
    assert ask(method, "what is it?", 19.5).text == "done"
    return chat


def test_without_a_box_the_frame_and_its_centre_are_searched():
    own = Pictures()
    with counting() as counts:
        chat = searching([{"tool": "crop_search"}], own)
    assert sorted(map(size, own.images)) == [(32, 18), (64, 36)]
    assert counts["tool_calls"] == 1
    shown = chat.of("search")[-1]
    assert "Full frame:" in shown.user
    assert "Centre:" in shown.user


def test_a_box_a_frame_and_words():
    own = Pictures()
    calls = [
        {"tool": "crop_search", "box": [0, 0, 500, 500]},
        {"tool": "image_search", "frame": "f0012000"},
        {"tool": "text_search", "query": "red cup"},
        {"tool": "image_search", "frame": "f0000500"},  # not among the 30 that were shown
        {"tool": "crop_search", "box": [9, 9, 3, 3]},
    ]
    with counting() as counts:
        chat = searching(calls, own)
    assert sorted(map(size, own.images)) == [(32, 18), (64, 36)]
    assert counts["tool_calls_failed"] == 2
    text = chat.of("search")[-1].user
    assert "about red cup" in text
    assert "nothing of it" not in text
    assert "frame 'f0000500' was not shown" in text
    assert "x1 < x2" in text
    assert len(chat.of("search")[0].frames) == 30


def test_an_anchor_is_the_one_frame_shown():
    chat = searching([{"tool": "image_search"}], Pictures(), anchor="f0015000")
    assert chat.of("search")[0].ids == ["f0015000"]


def test_a_provider_that_fails_costs_the_call():
    class Down(Pictures):
        def text(self, query, most):
            raise SearchError("away")

    chat = searching([{"tool": "text_search", "query": "x"}], Down())
    assert "The search failed: away" in chat.of("search")[-1].user


def test_tools_that_the_provider_lacks_are_not_offered(tmp_path):
    chat = searching([{"tool": "image_search"}], corpus(tmp_path))
    assert "[tools: text_search]" in chat.of("search")[0].text
    assert "there is no image_search here" in chat.asked[-3].text + chat.asked[-2].text


def corpus(folder):
    path = folder / "corpus.jsonl"
    documents = [
        {"title": "red cup", "text": "The price of the red cup is 42 coins."},
        {"title": "blue cup", "text": "The price of the blue cup is 13 coins."},
        {"title": "杯子", "text": "这个红色的杯子卖十三元", "url": "u"},
    ]
    path.write_text("".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents))
    return Corpus(path)


def test_the_corpus_finds_words_of_any_script(tmp_path):
    own = corpus(tmp_path)
    found = relevant("red cup", own.text("red cup", 10), 0.6, 10)
    assert [r.title for r in found] == ["red cup"]  # the blue one holds half of the words
    assert [r.title for r in own.text("杯子", 10)] == ["杯子"]
    assert relevant("price of a spoon", own.text("price of a spoon", 10), 0.6, 10) == []


def test_a_bad_corpus_is_named_by_its_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"title": "a", "text": "b"}\n{"title": "c"}\n')
    with pytest.raises(BenchError, match="line 2"):
        Corpus(path)
    with pytest.raises(BenchError, match="does not exist"):
        provider(f"corpus:{tmp_path / 'none'}")
    with pytest.raises(BenchError, match="forms"):
        provider("bing")
    assert provider("") is None


def test_stored_replies_serve_without_their_source(tmp_path):
    source = Pictures()
    kept = Replay(tmp_path / "kept", source)
    jpeg = picture(frame(3.0), 3.0, 720, 75).jpeg
    first = kept.text("cup", 5), kept.image(jpeg, 5)
    again = Replay(tmp_path / "kept")
    assert (again.text("cup", 5), again.image(jpeg, 5)) == first
    assert len(source.images) == 1
    with pytest.raises(SearchError, match="no stored reply"):
        again.text("cups", 5)


class Answer:
    def __init__(self, status, body):
        self.status_code, self._body = status, body

    def json(self):
        return self._body


@pytest.fixture
def google(monkeypatch):
    """Google with a key and without a network; what was requested."""
    monkeypatch.setenv("GOOGLE_API_KEY", "secret-key")
    monkeypatch.setenv("GOOGLE_CSE_ID", "engine")
    asked = []
    answers = {}

    class Client:
        def __init__(self, **_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def request(self, method, url, headers, **content):
            asked.append((method, url, headers, content))
            return answers["next"]

    import httpx

    monkeypatch.setattr(httpx, "Client", Client)
    return Google(), asked, answers


def test_the_web_is_asked_with_the_key_in_a_header(google):
    own, asked, answers = google
    answers["next"] = Answer(200, {"items": [{"title": "t", "snippet": "s", "link": "l"}]})
    assert own.text("cup", 10) == [Result("t", "s", "l")]
    [(method, url, headers, content)] = asked
    assert (method, headers) == ("GET", {"X-Goog-Api-Key": "secret-key"})
    assert "secret-key" not in url + json.dumps(content)


def test_a_picture_is_looked_up_by_its_content(google):
    own, asked, answers = google
    web = {
        "bestGuessLabels": [{"label": "a cup"}],
        "webEntities": [{"description": "Cup"}],
        "pagesWithMatchingImages": [{"pageTitle": "shop", "url": "u"}],
    }
    answers["next"] = Answer(200, {"responses": [{"webDetection": web}]})
    assert own.image(b"jpeg", 10) == [Result("Best guess", "a cup, Cup"), Result("shop", "", "u")]
    assert asked[0][3]["json"]["requests"][0]["image"]["content"] == "anBlZw=="


def test_failures_of_the_web_tell_no_secret(google, monkeypatch):
    own, _, answers = google
    answers["next"] = Answer(403, {"error": "secret-key is wrong"})
    with pytest.raises(SearchError, match="HTTP 403") as caught:
        own.text("cup", 10)
    assert "secret" not in str(caught.value)
    monkeypatch.delenv("GOOGLE_API_KEY")
    with pytest.raises(BenchError, match="GOOGLE_API_KEY"):
        providers.provider("web")
