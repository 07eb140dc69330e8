"""Methods that look once a second while they watch: when, at what, and until when."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import Spy, ask, begun, clips, line, show, texts, times

from bench_lib import methods
from bench_lib.errors import BenchError
from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.messages.chat import ChatError
from bench_lib.video.stream import SessionInfo

WISH = Note(0, 2.3, "Tell me when the bell rings.")
SAID = (line(1.5, "early"), line(4.2, "a bell"), line(6.9, "goodnight"))
SPOKEN = {
    "aura": "It rings.",
    "minicpm_o": '{"action": "speak", "text": "It rings."}',
    "thinkstream": "<think>a bell</think><response>It rings.",
}
QUIET = {
    "aura": "<|silent|>",
    "minicpm_o": '{"action": "listen"}',
    "thinkstream": "<think></think><silent>",
}
NAMES = tuple(SPOKEN)


def bell(name):
    """Speaks once the caption of the bell was shown."""
    return lambda messages, contract: SPOKEN[name] if "a bell" in texts(messages) else QUIET[name]


def watching(name, answer=None, step=2, until_s=10.0, key="w", **changes):
    """A method that was told to watch at 2.3 s, its stream cut into clips of `step` frames."""
    method = begun(name, Spy(answer or QUIET[name]), fps=2.0, speech="captions")
    shown = clips(0, until_s, step=step, said=SAID, **changes)
    for clip in shown:
        if clip.frames[0].t_s <= WISH.t_s < clip.frames[-1].t_s or (
            clip.frames[-1].t_s <= WISH.t_s < clip.frames[-1].t_s + 0.5
        ):
            method.observe(clip.until(WISH.t_s, True))
            assert method.watch(WISH, key)
            method.observe(clip.after(WISH.t_s, True))
        else:
            method.observe(clip)
    return method


@pytest.mark.parametrize("name", NAMES)
def test_it_looks_once_a_second_and_says_so_once_each(name):
    with counting() as counts:
        method = watching(name)
    assert counts["looks"] == 8  # 3, 4, ... 10
    assert method.alerts(10.0) == ()
    assert len(method.served.asked) == 8


@pytest.mark.parametrize("name", NAMES)
def test_the_first_alert_comes_with_the_second_in_which_it_could_be_known(name):
    method = watching(name, bell(name))
    found = method.alerts(10.0)
    assert [(a.key, a.text) for a in found[:1]] == [("w", "It rings.")]
    assert (found[0].observed_s, found[0].delivered_s) == (5.0, 5.0)
    assert method.alerts(4.9) == ()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(step=st.integers(1, 24))
def test_what_a_look_sees_does_not_depend_on_how_the_stream_was_cut(name, step):
    from bench_lib.messages.media import skeleton

    one, two = watching(name, bell(name), step=2), watching(name, bell(name), step=step)
    seen = [[skeleton(messages) for messages, _, _ in m.served.asked] for m in (one, two)]
    assert seen[0] == seen[1]
    assert one.alerts(99.0) == two.alerts(99.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_look_is_shown_nothing_later_than_its_second(name):
    """Also inside a long clip; and what comes after a second changes no request before it."""
    from bench_lib.messages.media import skeleton

    method = watching(name, step=21)
    for second, (messages, _, _) in zip(range(3, 11), method.served.asked, strict=True):
        assert max(times(messages)) == second
        assert ("goodnight" in texts(messages)) <= (second >= 7)
    plain, changed = (
        [skeleton(m) for m, _, _ in watching(name, **how).served.asked]
        for how in ({}, {"changed_from_s": 6.2})
    )
    assert plain[:4] == changed[:4]  # 3, 4, 5, 6
    assert plain[4] != changed[4]  # the control: at 7 it is seen


@pytest.mark.parametrize("name", NAMES)
def test_a_watch_that_is_over_is_looked_at_no_more(name):
    method = watching(name)
    method.unwatch("w")
    with counting() as counts:
        show(method, clips(10.5, 20))
    assert counts["looks"] == 0
    assert not method.state.watches


@pytest.mark.parametrize("name", NAMES)
def test_two_watches_are_two_looks_that_know_nothing_of_each_other(name):
    method = watching(name)
    alone = method.served.asked[-1][0]
    method.watch(Note(0, 10.0, "Tell me when the cat comes."), "cat")
    with counting() as counts:
        show(method, clips(10.5, 11))
    assert counts["looks"] == 2
    bells, cats = (texts(messages) for messages, _, _ in method.served.asked[-2:])
    assert "bell rings" in texts(alone)
    assert ("bell rings" in bells, "cat" in bells) == (True, False)
    assert ("bell rings" in cats, "cat" in cats) == (False, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_branch_answers_and_does_not_watch(name):
    method = watching(name, bell(name))
    before = method.alerts(99.0)
    branch = method.branch()
    with counting() as counts:
        show(branch, clips(10.5, 14))
    assert counts["looks"] == 0
    assert branch.alerts(99.0) == before
    assert [w.key for w in method.state.watches] == ["w"]


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_watch_goes_on_in_another_object(name, tmp_path):
    method = watching(name)
    method.save(tmp_path / "state")
    again = methods.load(name, fps=2.0, speech="captions").attach(Spy(QUIET[name]))
    again.load(tmp_path / "state")
    show(method, clips(10.5, 12))
    show(again, clips(10.5, 12))
    ends = [[texts(m) for m, _, _ in one.served.asked[-2:]] for one in (method, again)]
    assert ends[0] == ends[1]
    assert len(ends[0]) == 2
    assert method.state_bytes() == again.state_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_watches_end_with_their_session(name):
    method = watching(name, bell(name))
    method.end_session(0)
    assert method.alerts(99.0) == ()
    method.begin_session(SessionInfo("S002", 1, None, (8, 12)))
    with counting() as counts:
        show(method, clips(0, 3))
    assert counts["looks"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_cannot_be_asked_ends_the_stream(name):
    def down(messages, contract):
        raise ChatError("the server is away")

    with pytest.raises(ChatError, match="away"):
        watching(name, down)


def test_no_frames_are_worked_on_while_nothing_is_watched():
    for name in NAMES:
        method = begun(name, Spy("fine"), speech="captions")
        with counting() as counts:
            show(method, clips(0, 20, fps=method.fps))
        assert set(counts) == {"frames_observed"}


def test_a_window_of_seconds_is_all_that_is_held():
    for name in ("aura", "minicpm_o"):
        method = begun(name, Spy("fine"), speech="none", fps=2.0)
        sizes = set()
        for clip in clips(0, 120):
            method.observe(clip)
            sizes.add(method.state_bytes()["frames"])
        assert max(sizes) == 60 * 8 * 12 * 3
        assert method.bounded
        assert not begun(name, Spy("fine"), speech="captions").bounded


def test_what_cannot_be_meant_is_refused():
    for name, args, said in (
        ("aura", {"clips": 31}, "31 clips of a second do not fit"),
        ("minicpm_o", {"units": 31}, "31 units do not fit"),
        ("thinkstream", {"chunks": 0}, "chunks is 0"),
        ("aura", {"speech": "text"}, "speech is 'text'"),
    ):
        with pytest.raises(BenchError, match=said):
            methods.load(name, **args)


@pytest.mark.parametrize("name", NAMES)
def test_a_question_sees_the_stream_up_to_it(name):
    method = begun(name, Spy(SPOKEN[name]), fps=2.0, speech="captions")
    show(method, clips(0, 7, said=SAID))
    ask(method, 6.5)
    messages = method.served.asked[-1][0]
    assert max(times(messages)) == 6.5
    assert "a bell" in texts(messages)
    assert "goodnight" not in texts(messages)
