"""MiniCPM-o's policy: frames with their second of sound, listening and speaking, searches."""

from __future__ import annotations

import pytest
from live import SIZE, Spy, ask, begun, clips, line, show, texts, times, turns

from bench_lib import methods
from bench_lib.chat.cache import CachedChat
from bench_lib.dollhouse.ideal.observer import IdealChat
from bench_lib.errors import BenchError
from bench_lib.exchange import Note
from bench_lib.measure import counting
from bench_lib.messages.chat import Sound
from bench_lib.methods.minicpm_o import spoken_of

LISTEN, SPEAK = '{"action": "listen"}', '{"action": "speak", "text": "Now."}'


def duplex(answer=LISTEN, **args):
    return begun("minicpm_o", Spy(answer), **args)


def test_a_question_sees_thirty_frames_each_with_the_second_that_ends_with_it():
    method = duplex()
    show(method, clips(0, 100, fps=1.0, step=1, sound=True))
    ask(method, 100.0)
    _, turn = turns(method.served.asked[-1][0])
    assert turn[1:-1] == tuple(x for t in range(71, 101) for x in ([float(t)], {t}))
    sounds = [p for p in method.served.asked[-1][0][1].parts if isinstance(p, Sound)]
    assert [len(s.samples) for s in sounds] == [16_000] * 30
    assert turn[-1] == "[now 10:01:40]\nWhat now?"


def test_it_holds_thirty_seconds_of_sound():
    method = duplex()
    sizes = set()
    for clip in clips(0, 200, fps=1.0, step=1, sound=True):
        method.observe(clip)
        sizes.add(method.state_bytes()["frames"])
    assert max(sizes) == 30 * (2 * 16_000 + SIZE[0] * SIZE[1] * 3)
    assert method.bounded


def test_a_watch_is_thirty_units_since_it_was_told():
    method = duplex()
    show(method, clips(0, 9, fps=1.0, step=1, sound=True))
    method.watch(Note(0, 9.0, "Tell me when it rains."), "w")
    show(method, clips(10, 60, fps=1.0, step=1, sound=True))
    first, last = method.served.asked[0][0], method.served.asked[-1][0]
    assert times(first) == [10.0]
    assert times(last) == [float(t) for t in range(31, 61)]
    system, *units = turns(last)
    assert 'Your user has said: "Tell me when it rains."' in system[1]
    assert units[0] == ("user", [31.0], {31})
    assert units[1] == ("assistant", LISTEN)
    assert len(units) == 59
    assert method.served.asked[-1][2].max_new_tokens == 128


def test_what_was_spoken_stays_in_its_unit_until_it_slides_out():
    method = duplex(lambda messages, contract: SPEAK if times(messages)[-1] == 5.0 else LISTEN)
    method.watch(Note(0, 0.0, "Tell me."), "w")
    show(method, clips(1, 40, fps=1.0, step=1))
    spoke = [SPEAK in texts(messages) for messages, _, _ in method.served.asked]
    assert spoke == [6 <= t <= 34 for t in range(1, 41)]
    assert [(a.text, a.observed_s) for a in method.alerts(99.0)] == [("Now.", 5.0)]
    assert method.state.watches[0].memory == ()


def test_captions_stand_in_for_sound_where_a_model_does_not_hear():
    method = duplex(speech="captions")
    method.watch(Note(0, 0.0, "Tell me."), "w")
    show(method, clips(1, 3, fps=1.0, step=1, said=(line(1.5, "rain"),)))
    units = [turn for turn in turns(method.served.asked[-1][0]) if turn[0] == "user"]
    assert units == [
        ("user", [1.0]),
        ("user", [2.0], "[10:00:01] Speech: rain"),
        ("user", [3.0]),
    ]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (LISTEN, ""),
        (SPEAK, "Now."),
        ('<think>hm {"action": "speak"}</think>{"action": "listen"}', ""),
        ('Sure: {"action": "speak", "text": " It rains. "}!', "It rains."),
    ],
)
def test_a_unit_listens_or_speaks(reply, says):
    assert spoken_of(reply) == says


@pytest.mark.parametrize(
    "reply", ["", "listen", "{}", '{"action": "speak"}', '{"action": "wait", "text": "x"}', "{bad"]
)
def test_another_form_is_asked_for_again_and_then_listens_and_is_counted(reply):
    with pytest.raises(ValueError):
        spoken_of(reply)
    method = duplex(reply)
    method.watch(Note(0, 0.0, "Tell me."), "w")
    with counting() as counts:
        show(method, clips(1, 2, fps=1.0, step=1))
    assert method.alerts(9.0) == ()
    assert (counts["unreadable_units"], counts["model_calls"]) == (2, 4)


def test_sound_is_not_sent_to_a_model_that_takes_none(tmp_path):
    with pytest.raises(BenchError, match="takes none"):  # nor through the cache of its replies
        methods.load("minicpm_o").attach(CachedChat(IdealChat(), tmp_path))
    for name, args in (("minicpm_o", {}), ("offline_mllm", {"speech": "sound"})):
        method = methods.load(name, **args)
        assert method.wants_audio
        with pytest.raises(BenchError, match="takes none: choose a model that hears"):
            method.attach(IdealChat())
        assert not methods.load(name, speech="captions").attach(IdealChat()).wants_audio
