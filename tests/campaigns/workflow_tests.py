"""A file of workflow tests, as users write them: so many of five kinds in turn."""

HEAD = """
import pytest

from kagzi import Context, Retry, RunStatus, Signal, workflow

decision = Signal("decision", bool)


async def charge(amount: int) -> str:
    return f"tx-{amount}"


def ship(what: str) -> str:
    return f"sent {what}"


@workflow
async def order(ctx: Context, amount: int) -> str:
    paid = await ctx.step("charge", retry=Retry.exponential(5, initial="1s")).run(charge, amount)
    await ctx.sleep("confirm", "30s")
    return await ctx.step("ship").run(ship, paid)


@workflow
async def approval(ctx: Context, amount: int) -> str:
    await ctx.step("ask").run(charge, amount)
    try:
        approved = await ctx.wait_for(decision, timeout="3 days")
    except TimeoutError:
        return "expired"
    return "paid" if approved else "rejected"


@workflow
async def album(ctx: Context, amount: int) -> list[str]:
    return list(await ctx.parallel(ctx.child(order, amount + n) for n in range(2)))
"""
KINDS = (
    """
async def test_order_{n}(kagzi_env) -> None:
    calls = kagzi_env.mock("charge", raises=[TimeoutError(), TimeoutError()], returns="t{n}")
    assert await kagzi_env.run(order, {n}) == "sent t{n}"
    assert len(calls) == 3
""",
    """
async def test_expires_{n}(kagzi_env) -> None:
    run = await kagzi_env.start(approval, {n})
    await kagzi_env.advance("2 days")
    assert await run.status() is RunStatus.SLEEPING
    assert await run.result() == "expired"
""",
    """
async def test_approved_{n}(kagzi_env) -> None:
    run = await kagzi_env.start(approval, {n})
    await run.signal(decision, True)
    assert await run.result() == "paid"
""",
    """
async def test_children_{n}(kagzi_env) -> None:
    assert len(await kagzi_env.run(album, {n})) == 2
""",
    """
async def test_replayed_{n}(kagzi_env) -> None:
    run = await kagzi_env.start(order, {n})
    assert await run.result() == await kagzi_env.replay(run) == "sent tx-{n}"
""",
)


def workflow_tests(count: int) -> str:
    return HEAD + "".join(KINDS[n % len(KINDS)].format(n=n) for n in range(count))
