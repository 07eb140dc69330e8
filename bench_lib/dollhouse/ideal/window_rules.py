"""The ideal observer's rules for StreamArena's baselines: silence, thoughts, searches."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from bench_lib.dollhouse.ideal import arena_rules, replies, rules
from bench_lib.dollhouse.ideal.replies import Rule, Shown, compact, rule
from bench_lib.dollhouse.world import arena_sentences as a
from bench_lib.dollhouse.world import sentences as s

_TOOLS = re.compile(r"\[tools: ([^\]]*)\] \[rounds left: (\d+)\]")
_WORDS = re.compile(r"at most (\d+) words")


def due(shown: Shown) -> str:
    """What the newest instruction asks to be told of, if it holds now; else empty."""
    wishes = [x for x in shown.known.sentences if isinstance(x, a.Watch | s.Register)]
    now = shown.known.now
    if not wishes or now is None or not rules.holds(wishes[-1].condition, now):
        return ""
    wish = wishes[-1]
    told = s.Remind(wish.act) if isinstance(wish, s.Register) else s.Holds(wish.condition)
    return told.say()


@rule("aura")
def aura(shown: Shown) -> str:
    """What is due, or the marker for silence."""
    return due(shown) or "<|silent|>"


@rule("duplex")
def duplex(shown: Shown) -> str:
    """Speak what is due, else listen."""
    said = due(shown)
    return json.dumps({"action": "speak", "text": said} if said else {"action": "listen"})


def thought(shown: Shown) -> str:
    """What is new since the thoughts so far, in as many words as are allowed."""
    allowed = [int(n) for text in shown.texts for n in _WORDS.findall(text)]
    told = set(shown.known.sentences)
    new = replace(shown.known, facts=[f for f in shown.known.facts if f not in told])
    return f"<think>{' '.join(compact(new, allowed[0] if allowed else 0))}</think>"


@rule("thinkstream")
def thinkstream(shown: Shown) -> str:
    """A thought; nobody has asked."""
    return f"{thought(shown)}<silent>"


@rule("thinkstream_watch")
def thinkstream_watch(shown: Shown) -> str:
    """A thought, and what is due."""
    said = due(shown)
    return thought(shown) + (f"<response>{said}" if said else "<silent>")


def asked(base: Rule, now: bool) -> Rule:
    """Answer what can be answered, put off what cannot while there is time."""

    def decide(shown: Shown) -> str:
        options = tuple(shown.options.values())
        question = shown.question
        known = question is not None and rules.answer(question, shown.known, options) is not None
        said = f"<response>{base(shown)}" if known or now else "<silent>"
        return thought(shown) + said

    return decide


def looked_up(base: Rule) -> Rule:
    """Search for what the question needs by name, as long as there are rounds; then answer."""

    def decide(shown: Shown) -> str:
        text = "\n".join(shown.texts)
        offered = _TOOLS.findall(text)
        tools, left = offered[-1] if offered else ("", "0")
        calls = [
            json.dumps({"name": "text_search", "arguments": {"query": name}})
            for name in arena_rules.wanted(shown.known)
        ]
        new = [call for call in calls if call not in text]
        if "text_search" in tools and int(left) and new:
            return "\n".join(f"<tool_call>{call}</tool_call>" for call in new)
        return base(shown)

    return decide


for _kind in ("free", "choice", "adaptive_choice", "adaptive_text"):
    _base = replies.RULES[_kind]
    rule(f"tools_{_kind}")(looked_up(_base))
    rule(f"thinkstream_ask_{_kind}")(asked(_base, now=False))
    rule(f"thinkstream_now_{_kind}")(asked(_base, now=True))
