"""Schemas of workflows: made of annotations, docstrings and the signals that the code mentions."""

import json
import logging
from dataclasses import dataclass, make_dataclass
from typing import Any

import pydantic
import pytest

from kagzi import Context, InvalidArgument, Signal, workflow
from kagzi.core.limits import SCHEMA_BYTES
from kagzi.core.records import Served
from kagzi.sdk.schemas.registered import declared_signals, registered_schemas, schemas_of
from tests.sdk.run import programs


@dataclass
class Order:
    """What is bought."""

    item: str
    count: int = 1


class User(pydantic.BaseModel):
    name: str


approved = Signal("approved", bool)
ended = Signal("ended", User)
one_type = Signal("torn", int)
other_type = Signal("torn", str)


@workflow(version=3)
async def buy(ctx: Context, order: Order) -> User:
    """Buys something.

    And waits.
    """

    async def wait() -> None:
        await ctx.wait_for(ended)

    await wait()
    await ctx.wait_for(approved)
    return User(name=order.item)


def test_input_output_signals_and_description() -> None:
    schemas = schemas_of(buy)
    assert schemas.description == "Buys something.\n\nAnd waits."
    assert json.loads(schemas.input_schema)["$defs"]["Order"]["required"] == ["item"]
    assert json.loads(schemas.output_schema)["properties"]["name"]["type"] == "string"
    assert schemas.signal_schemas["approved"] == '{"type":"boolean"}'
    assert json.loads(schemas.signal_schemas["ended"])["required"] == ["name"]
    assert registered_schemas([buy]) == {Served("buy", "3"): schemas}


def test_no_input_an_optional_one_and_none_that_is_known() -> None:
    @workflow
    async def nothing(ctx: Context) -> None: ...

    @workflow
    async def optional(ctx: Context, count: int = 3) -> object: ...

    @workflow
    async def anything(ctx: Context, value: Any) -> Any: ...

    assert schemas_of(nothing).input_schema == '{"type":"null"}'
    assert json.loads(schemas_of(optional).input_schema) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert not schemas_of(optional).output_schema
    assert not schemas_of(anything)


def test_signals_are_found_by_name_or_given() -> None:
    local: Signal[int] = Signal("local", int)

    @workflow(signals=[Signal("given", str), Signal("torn", str)])
    async def waits(ctx: Context) -> None:
        await ctx.wait_for(local)
        await ctx.wait_for(one_type)
        await ctx.wait_for(other_type)
        await ctx.wait_for(programs.NUMBER)

    @workflow
    async def torn(ctx: Context) -> None:
        await ctx.wait_for(one_type)
        await ctx.wait_for(other_type)

    assert set(declared_signals(waits)) == {"given", "torn", "local", "number"}
    assert declared_signals(waits)["torn"].type is str
    assert declared_signals(torn) == {}  # which type is meant cannot be told
    for wrong, why in (([5], "is not a Signal"), ([approved, approved], "same name")):
        with pytest.raises(InvalidArgument, match=why):
            workflow(signals=wrong)(buy.fn)  # type: ignore[arg-type]


def test_what_is_too_large_is_left_out_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    large = make_dataclass("Large", [("x" * SCHEMA_BYTES, int)])

    async def takes(ctx: Context, value: Any) -> int: ...

    takes.__annotations__["value"] = large
    with caplog.at_level(logging.WARNING, "kagzi.worker"):
        schemas = schemas_of(workflow(takes))
    assert (schemas.input_schema, schemas.output_schema) == ("", '{"type":"integer"}')
    assert "the schema of its input is larger than 65536 bytes" in caplog.text


def test_the_schemas_of_too_many_workflows_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def documented(ctx: Context) -> None: ...

    documented.__doc__ = "x" * SCHEMA_BYTES
    workflows = [workflow(f"w{number}")(documented) for number in range(20)]
    with caplog.at_level(logging.WARNING, "kagzi.worker"):
        registered = registered_schemas(workflows)
    assert len(registered) == 15
    assert "'w15' and those after it are not registered" in caplog.text
