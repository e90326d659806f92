"""Runs as files: out of one server and into another, through real gRPC."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kagzi import AlreadyExists, Context, InvalidArgument, Kagzi, NotFound, Worker, workflow
from kagzi.core import limits
from kagzi.server.app import Server
from tests.support.timeouts import LOADED_MACHINE

from .conftest import StartServer

BIG = "x" * 300_000


@workflow
async def many(ctx: Context, steps: int) -> int:
    return len([await ctx.step("one").run(lambda: BIG) for _ in range(steps)])


@workflow
async def greet(ctx: Context, name: str) -> str:
    return await ctx.step("say").run(lambda: f"hello {name}")


async def exported(client: Kagzi, *ids: str) -> bytes:
    return b"".join([line for each in ids async for line in client.export(each)])


async def test_from_one_server_to_another(server: Server, start_server: StartServer) -> None:
    other = await start_server()
    async with Kagzi.connect(server.grpc_address) as client, Kagzi.connect(other.grpc_address) as elsewhere:
        async with Worker(server.grpc_address, workflows=[many, greet]):
            big = await client.start(many, 12, id="big", labels={"size": "xl"})
            small = await client.start(greet, "ada", id="small")
            assert await big.result(timeout=LOADED_MACHINE) == 12
            assert await small.result(timeout=LOADED_MACHINE) == "hello ada"
        data = await exported(client, "big", small.id)
        assert len(data) > 3 * limits.MESSAGE_SOFT_BYTES, "one message would do: this shows less than it should"
        first = json.loads(data.splitlines()[0])
        assert (first["kagzi"], first["run"]["workflow_id"]) == (1, "big")
        assert b'"json":"hello ada"' in data, "people cannot read it"
        imported = [run async for run in elsewhere.import_runs(io.BytesIO(data))]
        assert [(run.id, run.created) for run in imported] == [(big.id, True), (small.id, True)]
        again = [run async for run in elsewhere.import_runs(data.decode().splitlines())]
        assert [run.created for run in again] == [False, False]
        assert await elsewhere.get("big", many).result(timeout=LOADED_MACHINE) == 12
        assert await elsewhere.count(labels={"size": "xl"}) == 1
        assert await elsewhere.get(small.id, greet).result(timeout=LOADED_MACHINE) == "hello ada"
        steps = [replace(step, claim=0) for step in await client.get("big").steps()]  # claims are those of a server
        assert await elsewhere.get("big").steps() == steps


async def test_an_open_run_is_taken_over_by_a_worker_there(server: Server, start_server: StartServer) -> None:
    other = await start_server()
    async with Kagzi.connect(server.grpc_address) as client, Kagzi.connect(other.grpc_address) as elsewhere:
        run = await client.start(greet, "ada")
        async with Worker(other.grpc_address, workflows=[greet]):
            [_] = [one async for one in elsewhere.import_runs([line async for line in client.export(run.id)])]
            assert await elsewhere.get(run.id, greet).result(timeout=LOADED_MACHINE) == "hello ada"


async def test_what_is_wrong_is_named(server: Server, tmp_path: Path) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        runs = [await client.start("idle", number, id=f"run-{number}") for number in range(3)]
        data = await exported(client, *(run.id for run in runs))
        await (await client.bulk.terminate(workflow="idle")).wait("10s")
        await (await client.bulk.delete(workflow="idle")).wait("10s")
        lines = data.splitlines(keepends=True)
        damaged = tmp_path / "runs.jsonl"
        damaged.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"last_seq":0', b'"last_seq":"x"'), *lines[3:]]))
        with (
            damaged.open("rb") as file,
            pytest.raises(InvalidArgument, match=r"begins on line 3 .* line 1: Expected `int`.*run.last_seq"),
        ):
            [one async for one in client.import_runs(file)]
        assert [run.workflow_id async for run in client.list()] == ["run-0"], (
            "what came before is there, the rest is not"
        )
        with pytest.raises(InvalidArgument, match="cut off"):
            [one async for one in client.import_runs(lines[4:5])]
        with pytest.raises(InvalidArgument, match="needs lines"):
            [one async for one in client.import_runs("runs.jsonl")]
        with pytest.raises(InvalidArgument):
            [one async for one in client.import_runs(["no json at all"])]


async def test_what_is_taken_is_refused(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        run = await client.start("idle", 1, id="order")
        data = await exported(client, run.id)
        await run.terminate()
        with pytest.raises(AlreadyExists, match="with other content"):
            [one async for one in client.import_runs(io.BytesIO(data))]
        await (await client.bulk.delete(status="cancelled")).wait("10s")
        other = await client.start("idle", 2, id="order")
        with pytest.raises(AlreadyExists, match=other.id):
            [one async for one in client.import_runs(io.BytesIO(data))]


async def test_foreign_runs_are_not_found(server: Server) -> None:
    async with (
        Kagzi.connect(server.grpc_address, namespace="mine") as mine,
        Kagzi.connect(server.grpc_address, namespace="theirs") as theirs,
    ):
        run = await mine.start("idle", 1)
        with pytest.raises(NotFound):
            await exported(theirs, run.id)
        with pytest.raises(NotFound):
            await exported(mine, "no-such-run")
