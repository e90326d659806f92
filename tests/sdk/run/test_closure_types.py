# ruff: noqa: PLC3002, PLW0108  closures that could be shorter are what is tested
"""The type of what a closure returns: from the function that it calls, from `returns=`, or refused."""

import functools
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kagzi import Context, Kagzi, StepError, Worker, step, workflow
from kagzi.sdk.workflow.closures import Callee, called_in, resolve
from kagzi.sdk.workflow.codec import ANY, UNTYPED
from kagzi.sdk.workflow.signatures import facts_of

here = sys.modules[__name__]


@dataclass
class User:
    name: str

    @classmethod
    def load(cls, name: str) -> "User":
        return cls(name)

    @staticmethod
    def guest() -> "User":
        return User("guest")

    def rename(self, name: str) -> "User":
        return User(name)

    def __getitem__(self, key: object) -> Any: ...


def fetch(name: str = "", *names: str, **more: object) -> User:
    return User(name)


async def fetch_later(name: str) -> User:
    return User(name)


def untyped(name):  # type: ignore[no-untyped-def]
    return fetch(name)


def recursive():  # type: ignore[no-untyped-def]
    return recursive()  # type: ignore[no-untyped-call]


def anything() -> Any:
    return User("any")


@step
def as_step(name: str) -> User:
    return User(name)


@functools.lru_cache
def cached(name: str) -> User:
    return User(name)


names = ["a", "b"]
first, second = "a", User("b")
flag = True
local = fetch

TYPED = [
    lambda: fetch("a"),
    lambda: fetch(),
    lambda: fetch(first),
    lambda: fetch(first + first, first),
    lambda: fetch(*names),
    lambda: fetch(*names, a=1),
    lambda: fetch(name=first, other=len(names)),
    lambda: fetch(str(fetch("a")), str(fetch("b"))),
    lambda: fetch(names[0].upper()),
    lambda: fetch(f"{first}-{second.name}"),
    lambda: fetch(*(each for each in names)),
    lambda: fetch_later("a"),
    lambda: here.fetch("a"),
    lambda: here.User.load("a"),
    lambda: User.guest(),
    lambda: second.rename("c"),
    lambda: User("a"),
    lambda: untyped("a"),
    lambda: as_step("a"),
    lambda: cached("a"),
    lambda name: fetch(name),
    untyped,
]
UNKNOWN = [
    lambda: fetch("a").name,
    lambda: fetch("a") and first,
    lambda: fetch("a") if flag else first,
    lambda: (fetch if flag else len)("a"),
    lambda: (fetch("a"), fetch("b")),
    lambda: [fetch("a")],
    lambda: names[0],
    lambda: second[0]("a"),
    lambda: fetch("a").rename("b").name.upper(),
    lambda: (lambda: fetch("a"))(),
    lambda: not fetch("a"),
    lambda: -fetch("a"),  # type: ignore[operator]
    lambda: first,
    lambda: None,
    lambda: len(names),
    lambda: nothing(),  # type: ignore[name-defined]  # noqa: F821
    lambda: first.nothing(),  # type: ignore[attr-defined]
    lambda: SimpleNamespace(fetch=fetch).fetch("a"),
    recursive,
]


@pytest.mark.parametrize("number", range(len(TYPED)))
def test_a_closure_has_the_type_of_the_function_that_it_calls(number: int) -> None:
    assert facts_of(TYPED[number]).codec.annotation is User


@pytest.mark.parametrize("number", range(len(UNKNOWN)))
def test_what_is_not_a_single_call_of_a_typed_function_is_not_known(number: int) -> None:
    assert facts_of(UNKNOWN[number]).codec is UNTYPED


def test_variables_of_enclosing_functions_are_looked_up_in_each_closure() -> None:
    def closure_of(function: Any) -> Any:
        return lambda: function("a")

    assert facts_of(closure_of(fetch)).codec.annotation is User
    assert facts_of(closure_of(len)).codec is UNTYPED
    assert facts_of(closure_of(anything)).codec is ANY
    assert facts_of(closure_of(None)).codec is UNTYPED


def test_nothing_is_executed() -> None:
    class Proxy:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    class Lazy:
        @property
        def fetch(self) -> Any:
            raise AssertionError

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __call__(self) -> User:
            raise AssertionError

    proxy, lazy = Proxy(), Lazy()
    assert facts_of(lambda: lazy()).codec is UNTYPED
    assert facts_of(lambda: proxy()).codec is UNTYPED
    assert facts_of(lambda: proxy.fetch("a")).codec is UNTYPED
    assert facts_of(lambda: lazy.fetch("a")).codec is UNTYPED
    assert facts_of(lambda: lazy.other("a")).codec is UNTYPED


def test_the_names_are_found_in_the_code() -> None:
    assert called_in((lambda: here.User.load("a")).__code__) == Callee(("here", "User", "load"), False)
    assert resolve(TYPED[0], Callee(("fetch",), False)) is fetch


@workflow
async def closures(ctx: Context, name: str) -> list[str]:
    user = await ctx.step("fetch").run(lambda: fetch(name))
    later = await ctx.step("later").run(lambda: fetch_later(name))
    named = await ctx.step("named", returns=User).run(lambda: [fetch(name)][0])
    fluent = await ctx.step("fluent").returns(list[User]).retry(None).timeout("10s").run(lambda: [fetch(name)])  # type: ignore[arg-type]
    await ctx.sleep("replay", "1ms")
    return [user.name, later.name, named.name, fluent[0].name]


@workflow
async def refused(ctx: Context, number: int) -> str:
    values: list[Any] = [
        User("a"),
        {"users": [User("a")]},
        datetime.now(UTC),
        {1, 2},
        {"plain": [1, "two", None, 2.5, True, (3, 4)]},
    ]
    try:
        await ctx.step("value").retry(ctx_retry).run(lambda: [values[number]][0])
    except StepError as error:
        return str(error)
    return "kept"


ctx_retry = None


async def test_closures_keep_their_types_live_and_on_replay() -> None:
    async with Kagzi.connect(":memory:") as client, Worker(":memory:", workflows=[closures, refused]):
        assert await client.run(closures, "ada", timeout="30s") == ["ada"] * 4
        for number, words in enumerate(
            (
                "is a User, and its function does not say what it returns",
                "contains a User (at $.users[0])",
                "is a datetime",
                "is a set",
                "kept",
            )
        ):
            run = await client.start(refused, number)
            text = await run.result(timeout="30s")
            assert words in text
            if words != "kept":
                assert "returns=" in text
                assert [step.attempts for step in await run.steps()] == [1]
