"""The ideal observer's rules for memories that are written by prompts (OASIS, VST)."""

from __future__ import annotations

import json
from dataclasses import replace

from bench_lib.dollhouse.ideal import replies, rules
from bench_lib.dollhouse.ideal.replies import Rule, Shown, compact, rule
from bench_lib.dollhouse.world import sentences as s
from bench_lib.dollhouse.world.grammar import say


@rule("merge")
def merge(shown: Shown) -> str:
    """Two notes as one: all their facts, within the word budget."""
    return replies.caption(shown)


@rule("history")
def history(shown: Shown) -> str:
    """What was asked and answered: each sentence of the language once."""
    return say(*dict.fromkeys(shown.known.sentences)) or s.CannotTell().say()


@rule("thought")
def thought(shown: Shown) -> str:
    """What the frames show beyond what earlier thoughts say."""
    told = set(shown.known.sentences)
    new = replace(shown.known, facts=[f for f in shown.known.facts if f not in told])
    return "\n".join(compact(new, shown.max_words)) or s.NoNeed().say()


def search(shown: Shown) -> str:
    """A search for what the question names, or for what is in view where nothing is asked."""
    known, asked = shown.known, shown.question
    if asked is not None:
        wanted = " ".join([asked.say(), *shown.options.values()])
    else:
        wanted = " ".join(fact.say() for fact in known.now.facts()) if known.now else ""
    call = {"name": "search_memory", "arguments": {"text_input": wanted or s.CannotTell().say()}}
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def _settled(shown: Shown, reply: str) -> bool:
    """Whether a reply rests on what was shown and looking further cannot change it."""
    known = shown.known
    if shown.question is not None:
        return rules.answer(shown.question, known, tuple(shown.options.values())) is not None
    return bool(shown.registrations) or '"INTERVENE"' in reply


def lookup(base: Rule) -> Rule:
    """Reply where what is shown settles it, search the memory where it does not."""

    def decide(shown: Shown) -> str:
        reply = base(shown)
        return f"<answer>{reply}</answer>" if _settled(shown, reply) else search(shown)

    return decide


for _kind in ("choice", "adaptive_choice", "adaptive_text", "free"):
    rule(f"lookup_{_kind}")(lookup(replies.RULES[_kind]))
