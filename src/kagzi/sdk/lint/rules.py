"""The rules, by the names that suppressions, reports and the documentation use."""

from typing import NamedTuple


class Rule(NamedTuple):
    """`summary`: what a finding of this rule is about."""

    name: str
    summary: str


CLOCK = Rule("clock", "a clock is read outside of a step")
RANDOM = Rule("random", "a random value is made outside of a step")
BLOCKING = Rule("blocking", "files, processes or pauses that block the worker, outside of a step")
NETWORK = Rule("network", "a network call outside of a step")
THREAD = Rule("thread", "a thread, a process or another event loop is started outside of a step")
TIMER = Rule("timer", "a timer of asyncio where a durable one is meant")
UNORDERED = Rule("unordered", "steps are named or ordered by a set")
NOT_AWAITED = Rule("not-awaited", "a step, sleep, wait or child that is called and not awaited")
GLOBAL_STATE = Rule("global-state", "a module variable is changed by workflow code")
CANCELLATION = Rule("cancellation", "a cancellation is caught and lost")
UNSERIALISABLE = Rule("unserialisable", "an annotation has no JSON form")
SUPPRESSION = Rule("suppression", "a suppression without a reason, with an unknown rule, or without use")

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        CLOCK,
        RANDOM,
        BLOCKING,
        NETWORK,
        THREAD,
        TIMER,
        UNORDERED,
        NOT_AWAITED,
        GLOBAL_STATE,
        CANCELLATION,
        UNSERIALISABLE,
        SUPPRESSION,
    )
}

OF_TESTS = frozenset({"diverged", "ran-again", "argument", "result", "steps", "stuck"})
"""Kinds of findings of `crash_everywhere` that the lint does not look for. A suppression may name them."""
