"""The checks themselves: what breaks the contract is noticed, and what a reader sees of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.evaluate import checks
from bench_lib.evaluate.checks.trial import Mirror, Trial, Viewing, picture
from bench_lib.evaluate.drafts import TEMPLATE, draft

OWN_PROCESS = "a new process answers the same"

# Controls: what breaks the contract is seen to break it -------------------------------------------

RESPOND = """    def respond(self, query, generation):
        {}
        return super().respond(query, generation)

    def shown("""
ASKS = RESPOND.format("query = replace(query, text=query.text + str({}))")
SHARED_LIST = {
    "        self.state = Paced(seed)": "        self.leak = []\n        self.state = Paced(seed)",
    "        for frame in clip.frames:\n": "        self.leak.extend(clip.frames)\n"
    "        for frame in clip.frames:\n",
    "[(held, range(len(held.frames))) for held in self._sessions()]":
    "[(replace(self._sessions()[-1], frames=tuple(self.leak)), range(len(self.leak)))]",
}  # fmt: skip
KEPT_QUESTIONS = {"    def shown(": RESPOND.format(
    "LOG.append(query.text); query = replace(query, text=str(LOG))"
)}  # fmt: skip
FAULTS: list[tuple[dict[str, str], str]] = [
    ({"room: int = 64": "room: int"}, "every field has a default"),
    ({"        if self.room < 2:": "        self.state = 1\n        if self.room < 2:"},
     "making one does no work"),
    ({"    bounded = True\n": "    bounded = True\n    model = 'some'\n"}, "it says what it is"),
    ({"    def shown(": ASKS.format("__import__('uuid').uuid4()")},
     "the same stream gives the same answer"),
    ({"self.state = Paced(seed)": "self.state = self.state or Paced(seed)"}, "reset forgets"),
    (KEPT_QUESTIONS, "asking twice gives the same"),
    (KEPT_QUESTIONS, "the order of probes does not matter"),
    (SHARED_LIST, "a branch leaves no trace"),
    (SHARED_LIST, "later frames change nothing"),
    ({"range(len(held.frames))) for": "()) for"}, "the newest frame is seen"),
    ({"return [*self.state.past, *": "return [*"}, "the last session is remembered"),
    ({"    persistent = True": "    persistent = False",
      "        self.state = Paced(seed)": "        self.persistent = True\n"
      "        self.state = Paced(seed)"}, "the last session is forgotten"),
    ({"    def shown(": "    def load(self, folder):\n        super().load(folder)\n"
      "        self.state = replace(self.state, past=())\n\n    def shown("},
     "a saved memory answers the same"),
    ({"    def shown(": ASKS.format("len(LOG)"),
      "self.state = Paced(seed)": "LOG[:] = [seed]\n        self.state = Paced(seed)"},
     OWN_PROCESS),
    ({"    def shown(": "    def state_bytes(self):\n        return {'x': 1}\n\n    def shown("},
     "sizes are given by kind"),
    ({"    def shown(": "    def tokens(self):\n        return 2, 1\n\n    def shown("},
     "sizes are given by kind"),
    ({"    pace: int = 1\n": "    pace: int = 1\n    bank: object = None\n",
      "        self.state = Paced(seed)": "        import torch\n"
      "        self.state = Paced(seed, bank=torch.zeros(100)[:20])"},
     "no tensor hides a larger one"),
    ({"> self.room:\n": "> self.room and False:\n"}, "it stays bounded"),
    ({'count("frames_observed"': 'count("frames_encoded"'}, "work is that of its input class"),
    ({"> self.room:\n": "> self.room and False:\n"}, "work is that of its input class"),
    ({"    def shown(": RESPOND.format("assert self.state.seen > 1")}, "one frame is enough"),
    ({"    def shown(": RESPOND.format("self._sessions()[-1].frames[0]")},
     "an empty session does no harm"),
    ({"                self._halve()": "                raise MemoryError"},
     "a long session does no harm"),
]  # fmt: skip


WATCHER = '''"""drafted: watches, and keeps the contract or not."""
from dataclasses import dataclass, replace

from bench_lib.methods.aura import Aura


@dataclass(kw_only=True)
class Drafted(Aura):
    """See the module."""

    def {}
'''
WATCH_FAULTS = [
    ("alerts(self, t_s):\n        return super().alerts(1e9)", "alerts are causal"),
    ("unwatch(self, key):\n        pass", "a watch that is over is silent"),
    (
        "alerts(self, t_s):\n"
        "        newest = str(self.state.current.frames[-1].pixels().sum())\n"
        "        return tuple(replace(a, text=a.text + newest) for a in super().alerts(t_s))",
        "what is to come is not told",
    ),
]


@pytest.fixture
def drafted(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Trial]]:
    """Makes a method from the template with some changes; it is forgotten after the test."""
    before = list(methods.__path__)

    def make(changes: dict[str, str]) -> Trial:
        source = TEMPLATE.read_text().replace(
            "\n\n@dataclass", "\n\nLOG: list = []\n\n\n@dataclass", 1
        )
        for old, new in changes.items():
            assert old in source, old
            source = source.replace(old, new, 1)
        (tmp_path / "drafted.py").write_text(source)
        draft("drafted", str(tmp_path))
        return Trial("drafted", {"room": 8})

    yield make
    methods.__path__[:] = before
    sys.modules.pop("bench_lib.methods.drafted", None)


def test_the_template_keeps_the_contract(drafted) -> None:
    outcomes = checks.run(drafted({}))
    assert [(o.check.name, o.message) for o in outcomes if o.result == "failed"] == []
    left_out = {o.check.name for o in outcomes if o.result == "not asked"}
    assert left_out == {"the last session is forgotten", *(name for _, name in WATCH_FAULTS)}


@pytest.mark.parametrize(("changes", "name"), FAULTS, ids=[n.replace(" ", "-") for _, n in FAULTS])
def test_what_breaks_the_contract_is_noticed(drafted, changes: dict[str, str], name: str) -> None:
    [check] = [c for c in checks.CHECKS if c.name == name]
    outcome = checks.tried(check, drafted(changes))
    assert outcome.result == "failed"
    assert outcome.message


@pytest.mark.parametrize(("fault", "name"), WATCH_FAULTS, ids=[n for _, n in WATCH_FAULTS])
def test_a_watcher_that_breaks_the_contract_is_noticed(
    drafted, tmp_path: Path, fault: str, name: str
) -> None:
    drafted({})
    [check] = [c for c in checks.CHECKS if c.name == name]
    for own, result in ((fault, "failed"), ("kept(self):\n        pass", "passed")):
        (tmp_path / "drafted.py").write_text(WATCHER.format(own))
        draft("drafted", str(tmp_path))
        outcome = checks.tried(check, Trial("drafted", {"clips": 8, "window_s": 8.0}))
        assert outcome.result == result, outcome.message


def test_a_faulty_method_is_stopped_by_name(drafted) -> None:
    outcomes = checks.run(drafted({"> self.room:\n": "> self.room and False:\n"}))
    with pytest.raises(BenchError, match="2 checks failed: it stays bounded"):
        checks.require(outcomes)
    checks.require([o for o in outcomes if o.result != "failed"])


def test_every_check_has_been_seen_to_fail() -> None:
    by_the_registry = {"a wrong parameter is refused"}  # no method can break it
    seen = {name for _, name in (*FAULTS, *WATCH_FAULTS)} | by_the_registry
    assert seen == {check.name for check in checks.CHECKS}


def test_a_wrong_parameter_is_refused_by_name() -> None:
    with pytest.raises(BenchError, match="did you mean 'buffer_frames'"):
        methods.load("oasis", buffer_frame=3)


# The bed ------------------------------------------------------------------------------------------


def test_the_mirror_tells_apart_whatever_it_is_shown() -> None:
    replies = set()
    for changed, text in ((None, "a"), (0, "a"), (None, "b")):
        view = Viewing.of(Trial("raw_video"))
        assert isinstance(view.method.served, Mirror)
        view.session(3, changed_from=changed)
        replies.add(view.ask(text).text)
    assert len(replies) == 3


def test_films_differ_by_seed_and_frame_and_stay_the_same() -> None:
    shown = [picture(seed, number).tobytes() for seed in (0, 1) for number in range(6)]
    assert len(set(shown)) == 12
    assert picture(0, 0) is picture(0, 0)


def test_windows_are_scaled_where_they_are_too_wide_for_small_streams() -> None:
    assert Trial.scaled("oasis").args["buffer_frames"] == 4
    assert Trial.scaled("simplestream").args == {}


# Drafts -------------------------------------------------------------------------------------------


def test_a_draft_is_found_and_an_edited_one_read_again(drafted, tmp_path: Path) -> None:
    drafted({})
    assert "drafted" in methods.available()
    assert methods.load("drafted").room == 64
    first = draft("drafted", str(tmp_path))
    drafted({"room: int = 64": "room: int = 5"})
    assert methods.load("drafted").room == 5
    assert draft("drafted", str(tmp_path)).label != first.label


def test_a_draft_keeps_the_file_that_is_there(drafted, tmp_path: Path) -> None:
    drafted({"room: int = 64": "room: int = 6"})
    assert draft("drafted", str(tmp_path)).source.count("room: int = 6\n") == 1


@pytest.mark.parametrize("name", ["Halving", "a-b", "../x", "3d", ""])
def test_a_draft_has_the_name_of_a_module(name: str) -> None:
    with pytest.raises(BenchError, match="small letters"):
        draft(name)


def test_a_draft_may_not_take_the_name_of_a_method(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="already"):
        draft("oasis", str(tmp_path))
    assert not list(tmp_path.iterdir())


# What a reader sees -------------------------------------------------------------------------------


def test_the_contract_and_its_outcomes_are_tables() -> None:
    page = checks.describe()._repr_html_()
    for check in checks.CHECKS:
        assert check.name in page
        assert check.text[:40].split("`")[0] in page.replace("&#39;", "'")
    assert "✗ failed" not in checks.show(checks.run(Trial("null")))._repr_html_()


def test_the_command_lists_every_method() -> None:
    command = [sys.executable, "-m", "bench_lib.methods"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "| method | input | persistent | bounded | model | idea |"
    listed = {line.split("`")[1] for line in lines[2:]}
    assert listed == set(methods.available()) - {"hashing"}
    assert all(line.count("|") == 7 and not line.endswith("|  |") for line in lines)
