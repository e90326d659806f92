"""Workflows that wait for a person behind a generator, and in a tool of an agent."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.messages import ModelMessagesTypeAdapter, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from kagzi import Context, Signal, workflow

from .flows import note

approved = Signal("approved", bool)


@workflow
async def behind_a_generator(ctx: Context) -> bool:
    queue: asyncio.Queue[bool] = asyncio.Queue()

    async def feed() -> None:
        await queue.put(await ctx.wait_for(approved))

    async def answers() -> AsyncGenerator[bool]:
        yield await queue.get()

    await ctx.step("before").run(noted)
    task = asyncio.create_task(feed())
    async for answer in answers():
        await task
        await ctx.step("after").run(noted)
        return answer
    raise AssertionError


async def noted() -> None:
    note("begin")


# --- an agent ---------------------------------------------------------------------------------------------------------


class RecordedModel(WrapperModel):
    """A model whose answers are steps of a run: each is asked for, and paid for, once."""

    def __init__(self, ctx: Context, wrapped: Model) -> None:
        super().__init__(wrapped)
        self._ctx = ctx

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        async def ask() -> list[dict[str, Any]]:
            note("begin")
            response = await self.wrapped.request(messages, model_settings, model_request_parameters)
            return ModelMessagesTypeAdapter.dump_python([response], mode="json")

        (response,) = ModelMessagesTypeAdapter.validate_python(await self._ctx.step("model").run(ask))
        assert isinstance(response, ModelResponse)
        return response


async def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands for a model behind an API: it asks a person, and says what they said."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"refund: {last.content}")])
    return ModelResponse(parts=[ToolCallPart("ask_a_person", {"question": "refund 100?"})])


agent = Agent(deps_type=Context)


@agent.tool
async def ask_a_person(run: RunContext[Context], question: str) -> str:
    """Ask somebody who may decide."""
    return "granted" if await run.deps.wait_for(approved) else "refused"


@workflow
async def support(ctx: Context, question: str) -> str:
    answer = await agent.run(question, deps=ctx, model=RecordedModel(ctx, FunctionModel(think)))
    await ctx.step("send").run(noted)
    return answer.output


@workflow
async def streamed_support(ctx: Context, question: str) -> str:
    """The same through the agent's stream of events."""
    output = ""
    async with agent.iter(question, deps=ctx, model=RecordedModel(ctx, FunctionModel(think))) as steps:
        async for _ in steps:
            pass
        output = "" if steps.result is None else steps.result.output
    await ctx.step("send").run(noted)
    return output
