"""StreamArena's baselines with the ideal observer: what each policy lets through, and its budgets.

The film of 150 s holds 6 RTP, 8 HR, 6 Tool and 8 Pro items. What is missed is missed by the policy:
seconds that left the window, words that left the thought, searches that are not there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from arena_turns import FILM_S, share, walked
from arena_walk import arena
from live import times

from bench_lib import methods, paths
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.messages.chat import Chat, Frames, Sound
from bench_lib.methods.worker import Worker
from bench_lib.params.evaluate import EvalParams

ARENA = ("offline_mllm", "aura", "minicpm_o", "thinkstream", "vst", "streamforest", "streammind")
CAPTIONS = {"speech": "captions"}


class Watched(IdealChat):
    """The ideal observer, whose requests are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def complete(self, messages, contract, generation):
        self.asked.append((messages, contract, generation))
        return super().complete(messages, contract, generation)


def sizes(chat: Watched, *contracts: str) -> set[int]:
    """Numbers of frames of the requests under contracts that begin so."""
    return {len(times(m)) for m, c, _ in chat.asked if c.name.startswith(contracts)}


def test_a_whole_prefix_answers_all_that_can_be_seen_and_heard():
    for name, args in (("offline_mllm", {}), ("vst", CAPTIONS)):
        found = share(name, **args)
        assert (found["RTP"], found["HR"], found["Tool"]) == (1.0, 1.0, 0.0), name
        assert "Pro" not in found  # they cannot watch
    assert share("offline_mllm", speech="none")["RTP"] < 1.0  # what was said is not seen
    assert share("offline_mllm", max_frames=4)["HR"] < 1.0


@pytest.mark.parametrize(("name", "args"), [("aura", {}), ("minicpm_o", CAPTIONS)])
def test_a_window_knows_the_present_and_watches_and_forgets(name, args):
    found = share(name, **args)
    assert (found["RTP"], found["Pro"], found["Tool"]) == (1.0, 1.0, 0.0)
    assert 0 < found["HR"] < 1


@pytest.mark.parametrize(
    ("name", "args"), [("offline_mllm", {}), ("minicpm_o", CAPTIONS)], ids=["offline", "duplex"]
)
def test_with_searches_tool_questions_are_answered(name, args):
    corpus = "corpus:dollhouse"
    assert share(name, tasks=("Tool",), search=corpus, **args) == {"Tool": 1.0}
    none = share(name, tasks=("Tool",), search=corpus, tool_rounds=0, **args)
    assert none == {"Tool": 0.0}


def test_short_thoughts_lose_what_longer_ones_keep():
    short = {"chunks": 40}
    small = share("thinkstream", tasks=("HR",), **short, think_tokens=4)["HR"]
    large = share("thinkstream", tasks=("HR",), **short, think_tokens=400, context_tokens=10**6)
    assert small < large["HR"]
    assert large["HR"] == 1.0
    assert share("thinkstream", tasks=("RTP", "Pro"), **short) == {"RTP": 1.0, "Pro": 1.0}


def test_a_longer_window_remembers_more():
    known = [share("aura", tasks=("HR",), clips=s, window_s=float(s))["HR"] for s in (2, 30, 200)]
    assert known[0] < known[1] < known[2] == 1.0


@pytest.mark.parametrize(
    ("name", "args", "contracts", "most"),
    [
        ("offline_mllm", {}, ("free",), 128),
        ("aura", {}, ("free", "aura"), 60),
        ("minicpm_o", CAPTIONS, ("free", "duplex"), 30),
        ("thinkstream", {"chunks": 40}, ("thinkstream",), 40),
        ("vst", {"segments": [2, 3, 5, 5], "max_frames": 90}, ("free", "thought"), 30),
    ],
)
def test_each_request_keeps_to_its_budget(name, args, contracts, most):
    """Eq. 15 to 18 of StreamArena: 128 frames, 30 x 2, 30, 20 x 2; VST's prefix in K parts."""
    chat = Watched()
    walked(name, chat, tasks=("RTP", "Pro") if name == "thinkstream" else (), **args)
    assert max(sizes(chat, *contracts)) == most
    shown = [part for m, _, _ in chat.asked for turn in m for part in turn.parts]
    assert not [part for part in shown if isinstance(part, Sound)]
    assert all(part.size for part in shown if isinstance(part, Frames))


@pytest.mark.parametrize("name", ["aura", "minicpm_o", "thinkstream"])
def test_a_watch_costs_one_look_a_second_of_waiting_and_ends_with_its_alert(name):
    chat = Watched()
    _, _, first = walked(name, chat, tasks=("Pro",), **CAPTIONS)
    looks = [c.name for _, c, _ in chat.asked]
    candidates = [c for c in arena(FILM_S)[1].candidates if c.task == "Pro"]
    waited = sum(int(first[c.id].observed_s) - int(c.probes[0].t_s) for c in candidates)
    assert set(looks) == {{"aura": "aura", "minicpm_o": "duplex"}.get(name, "thinkstream_watch")}
    assert len(looks) == waited
    # The first alert stands in the very second in which the condition comes true.
    assert {first[c.id].observed_s - c.ideal[0].start_s for c in candidates} == {0.0}


def test_a_method_is_handed_nothing_of_the_trigger(monkeypatch):
    """All that `watch` is given is what the user said, when, and a name."""
    seen = []
    cls = methods.find("aura")
    real = cls.watch
    monkeypatch.setattr(
        cls, "watch", lambda self, note, key: (seen.append((note, key)), real(self, note, key))[1]
    )
    walked("aura", tasks=("Pro",))
    for note, key in seen:
        [candidate] = [c for c in arena(FILM_S)[1].candidates if c.id == key]
        assert note.text == candidate.question
        assert note.t_s == candidate.probes[0].t_s
        assert note.wall_s is None


def test_an_observer_that_errs_is_premature_or_late():
    """The control of the timing: without sight of the newest seconds nothing is on time."""
    assert share("aura", tasks=("Pro",), fps=0.25, clip_frames=1)["Pro"] < 1.0


# What each one says of itself ---------------------------------------------------------------------


def test_input_classes_and_attention_are_declared():
    """Replay of a thinned prefix reads frames with later ones (Eq. 13), but chunk by chunk."""
    declared = {name: methods.load(name) for name in methods.available()}
    replays = {n for n, m in declared.items() if m.input_class == "thinned"}
    assert {n for n, m in declared.items() if not m.causal} == replays - {"thinkstream"}
    assert {"offline_mllm", "vst", "streamforest", "thinkstream"} <= replays
    assert {declared[n].input_class for n in ("aura", "minicpm_o", "simplestream")} == {"window"}
    watching = {n for n, m in declared.items() if m.watches}
    assert watching == {"aura", "minicpm_o", "thinkstream", "streammind", "worker"}
    assert {n for n, m in declared.items() if m.tools} == {"streammind"}
    assert methods.load("offline_mllm", search="web").tools
    other = {"segment_seconds": 8.0}, {"mode": "streaming"}, {"form": "thinned"}
    names = ("vst", "streamforest", "fluxmem")
    traits = [methods.load(n, **a).causal for n, a in zip(names, other, strict=True)]
    assert traits == [True, True, False]
    assert isinstance(declared["worker"], Worker)


# Presets ------------------------------------------------------------------------------------------


def preset(kind: str, name: str) -> EvalParams:
    file = Path(paths.root()) / "params" / f"03_eval.{kind}-{name}.yaml"
    return EvalParams(**yaml.safe_load(file.read_text()))


@pytest.mark.parametrize("name", ARENA)
def test_a_preset_of_the_paper_can_be_used_and_says_where_each_value_is_from(name, monkeypatch):
    params = preset("arena", name)
    assert params.method == name
    assert params.seed == 42
    built = methods.load(name, **params.method_args)
    assert isinstance(built.causal, bool)
    text = (Path(paths.root()) / "params" / f"03_eval.arena-{name}.yaml").read_text()
    own = text.partition("method_args:")[2].partition("\nmax_new_tokens")[0].splitlines()
    bare = [line for line in own if line.strip() and "#" not in line]
    assert len(bare) <= 9  # those that a line above them covers
    kind = params.backbone.partition(":")[0]
    if kind == "endpoint":
        from bench_lib.opening import chat

        model: Chat = chat.open(params.backbone, **params.backbone_args)
        assert built.attach(model).frame_size((1080, 1920))


def test_the_settings_of_the_paper_stand_in_the_presets():
    vst = methods.load("vst", **preset("arena", "vst").method_args)
    assert vst.segments == [2, 3, 5, 5]
    assert (vst.max_frames, vst.segment_tokens, vst.fps) == (384, 8192, 2.0)
    assert (vst.memory_tokens, vst.answer_tokens, vst.speech) == (5000, 32_768, "captions")
    forest = methods.load("streamforest", **preset("arena", "streamforest").method_args)
    assert (forest.max_frames, forest.fps, forest.mode) == (2048, 1.0, "batch")
    assert forest.speech == "captions"
    for name in ("offline_mllm", "aura", "minicpm_o", "thinkstream"):
        params = preset("arena", name)
        usual, built = methods.load(name), methods.load(name, **params.method_args)
        differ = {
            f for f in methods.parameters(type(built)) if getattr(usual, f) != getattr(built, f)
        }
        assert differ <= {"search"}, name


@pytest.mark.parametrize("name", ["offline_mllm", "aura", "minicpm_o", "thinkstream"])
def test_a_preset_for_the_household_is_answered_by_the_observer(name):
    params = preset("scaled", name)
    assert (params.backbone, params.source) == ("ideal", "dollhouse-arena-small")
    assert methods.load(name, **params.method_args).attach(IdealChat())
