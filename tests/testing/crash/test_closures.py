"""A variable of an enclosing function outlives the run only if its cell does: one that the run has made does not."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kagzi import Context, Workflow, workflow
from kagzi.testing import NotReplaySafe, TestEnv

MARK = "# outlives the run"


async def ship(item: str) -> str:
    return f"shipped {item}"


def make_counter() -> Callable[[], int]:
    count = 0

    def counter() -> int:
        nonlocal count
        count += 1  # outlives the run
        return count

    return counter


def counted(fn: Callable[[str], str]) -> Callable[[str], str]:
    calls: list[str] = []

    def wrapper(text: str) -> str:
        calls.append(text)  # outlives the run
        return fn(text)

    return wrapper


count_for_all = make_counter()


@counted
def loud(text: str) -> str:
    return text.upper()


class View:
    state = "new"


# --- right ------------------------------------------------------------------------------------------------------------


@workflow
async def appends(ctx: Context, item: str) -> list[str]:
    done: list[str] = []

    async def one(name: str) -> None:
        await ctx.sleep("x", "1s")
        done.append(await ctx.step("ship").run(ship, name))

    await ctx.parallel(one(name) for name in (item, "fig"))
    return sorted(done)


@workflow
async def rebinds(ctx: Context, item: str) -> int:
    total = 0

    async def one() -> None:
        nonlocal total
        await ctx.step("ship").run(ship, item)
        total += 1

    await one()
    await one()
    return total


@workflow
async def shows(ctx: Context, item: str) -> str:
    view = View()

    def show(state: str) -> None:
        view.state = state

    show("shipping")
    await ctx.step("ship").run(ship, item)
    show("shipped")
    return view.state


@workflow
async def in_lambdas_and_comprehensions(ctx: Context, item: str) -> list[int]:
    sizes: dict[str, int] = {}
    keep: Callable[[str], int] = lambda name: sizes.setdefault(name, len(name))  # noqa: E731
    await ctx.step("ship").run(ship, item)
    return [keep(name) for name in (item, "fig", item)] + [sum(sizes[name] for name in sizes)]


@workflow
async def in_a_class(ctx: Context, item: str) -> int:
    log: list[str] = []

    class Shop:
        sold = 0

        def sell(self, name: str) -> None:
            self.sold += 1
            type(self).sold += 1
            log.append(name)

    shop = Shop()
    shop.sell(item)
    await ctx.step("ship").run(ship, item)
    shop.sell(item)
    return len(log) + Shop.sold


@workflow
async def makes_its_own(ctx: Context, item: str) -> list[Any]:
    """The functions are made in the run, by code that also made some of the module."""
    count, shout = make_counter(), counted(str.upper)
    before = count()
    await ctx.step("ship").run(ship, item)
    return [before, count(), shout(item)]


RIGHT: list[Workflow[str, Any]] = [
    appends,
    rebinds,
    shows,
    in_lambdas_and_comprehensions,
    in_a_class,
    makes_its_own,
]


@pytest.mark.parametrize("right", RIGHT, ids=[each.name for each in RIGHT])
async def test_what_the_run_has_made_does_not_outlive_it(kagzi_env: TestEnv, right: Workflow[str, Any]) -> None:
    report = await kagzi_env.crash_everywhere(right, "kiwi", any_order=False)
    assert report.kills > 0


# --- wrong ------------------------------------------------------------------------------------------------------------


@workflow
async def counts_with_that_of_the_module(ctx: Context, item: str) -> str:
    count_for_all()
    return await ctx.step("ship").run(ship, item)


@workflow
async def calls_a_decorated_function(ctx: Context, item: str) -> str:
    return await ctx.step("ship").run(ship, loud(item))


def made_by_a_function() -> Workflow[str, str]:
    sold: list[str] = []

    @workflow
    async def made(ctx: Context, item: str) -> str:
        sold.append(item)  # outlives the run
        return await ctx.step("ship").run(ship, item)

    return made


def made_two_functions_deep() -> Workflow[str, str]:
    sold = 0

    @workflow
    async def made_deep(ctx: Context, item: str) -> str:
        async def sell() -> None:
            nonlocal sold
            await ctx.sleep("pack", "1s")
            sold += 1  # outlives the run

        await sell()
        return await ctx.step("ship").run(ship, item)

    return made_deep


def of_a_class() -> Workflow[str, str]:
    class Shop:
        sold = 0

        @classmethod
        async def sell(cls, ctx: Context, item: str) -> str:
            __class__.sold += 1  # type: ignore[name-defined]  # outlives the run
            return await ctx.step("ship").run(ship, item)

    async def of_class(ctx: Context, item: str) -> str:
        sell: Callable[[Context, str], Awaitable[str]] = Shop.sell
        return await sell(ctx, item)

    return Workflow(of_class, name="of-class")


WRONG: list[Workflow[str, str]] = [
    counts_with_that_of_the_module,
    calls_a_decorated_function,
    made_by_a_function(),
    made_two_functions_deep(),
    of_a_class(),
]


@pytest.mark.filterwarnings("ignore::kagzi.KagziWarning")
@pytest.mark.parametrize("wrong", WRONG, ids=[each.name for each in WRONG])
async def test_what_was_there_before_the_run_outlives_it(kagzi_env: TestEnv, wrong: Workflow[str, str]) -> None:
    with pytest.raises(NotReplaySafe) as caught:
        await kagzi_env.crash_everywhere(wrong, "kiwi")
    first = caught.value.report.findings[0]
    assert first.kind == "global-state"
    assert first.expected != first.got
    assert first.line is not None
    called = "(called by " in first.message  # a plain function: the line is that of the workflow
    assert called or MARK in first.line.text
