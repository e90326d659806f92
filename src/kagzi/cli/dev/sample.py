"""The workflow that `kagzi dev` serves without a file: something to start."""

from ...sdk.workflow.context import Context
from ...sdk.workflow.decorator import workflow


def greet(name: str) -> str:
    return f"Hello, {name}!"


@workflow
async def hello(ctx: Context, name: str) -> str:
    """One step, one durable sleep, one result."""
    greeting = await ctx.step("greet").run(greet, name)
    await ctx.sleep("breathe", "2s")
    return greeting.upper()
