"""Ten mistakes of a first hour, for test_first_hour. What is wrong is what is tried."""

# ruff: noqa: ASYNC251, PTH123
import time

from kagzi import Context, Retry, Signal, workflow

approve = Signal("approve", bool)


def price(item: str) -> int:
    return {"tea": 3}[item]


def pay(item: str) -> int:
    raise ConnectionError("the bank does not answer")


def read_file() -> object:
    with open(__file__) as file:
        return file


@workflow
async def failing_step(ctx: Context, item: str) -> int:
    return await ctx.step("price").run(price, item)


@workflow
async def failing_twice(ctx: Context, item: str) -> int:
    return await ctx.step("pay", retry=Retry.fixed(2, "10ms")).run(pay, item)


@workflow
async def forgotten_await(ctx: Context, item: str) -> str:
    ctx.step("price").run(price, item)
    return "done"


@workflow
async def waits_for_approval(ctx: Context) -> bool:
    return await ctx.wait_for(approve)


@workflow
async def takes_a_number(ctx: Context, number: int) -> int:
    return number + 1


@workflow
async def returns_a_file(ctx: Context) -> object:
    return await ctx.step("read").run(read_file)


@workflow
async def blocks(ctx: Context) -> str:
    time.sleep(0.1)
    return "done"


@workflow
async def breaks(ctx: Context, item: str) -> int:
    return len(item) // 0
