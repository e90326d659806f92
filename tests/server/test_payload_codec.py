"""With a codec, who has the database or the logs can read nothing that user code says; with its keys all of it can be
read as before."""

import asyncio
import base64
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from kagzi import Context, Kagzi, NonRetryable, Retry, RunError, Signal, StepError, Worker, current_step, workflow
from kagzi.core.errors import InvalidArgument, PreconditionFailed
from kagzi.core.states import RunStatus
from kagzi.crypto import AesGcm
from kagzi.sdk.transport.payload_codec import MessageCodec
from kagzi.server.app import Server
from kagzi.v1.common_pb2 import Payload
from kagzi.v1.worker_pb2 import Task
from kagzi.v1.workflow_pb2 import StartWorkflowRequest
from tests.server.conftest import StartServer
from tests.support.kagzi_inline import kagzi_inline
from tests.support.polling import until

SECRET = "platypus"  # in everything that user code says
LOGGED = "wombat"  # in what a step logs: its author sees it in the worker's log
FIRST, SECOND = AesGcm.new_key(), AesGcm.new_key()
CODEC = AesGcm({"2025": FIRST})
STRICT = AesGcm({"2025": FIRST}, strict=True)
QUICKLY = Retry.fixed(5, "1ms")

approved = Signal("approved", str)
number = Signal("number", int)
attempts = {"charge": 0}


def secret(what: str) -> str:
    return f"{SECRET} {what}"


async def charge(card: str) -> dict[str, str]:
    attempts["charge"] += 1
    logging.getLogger("shop").warning("%s %s", LOGGED, card[-4:])
    current_step().heartbeat({"progress": secret("heartbeat")})
    if attempts["charge"] < 3:
        try:
            raise KeyError(secret("cause"))
        except KeyError as error:
            raise OSError(secret(f"no connection for {card}")) from error
    return {"receipt": secret("output of a step")}


async def refuse(card: str) -> None:
    raise NonRetryable(secret("refused"), code="E7", details={"card": secret(card)})


@workflow
async def child(ctx: Context, name: str) -> str:
    return secret(f"output of a child with {name}")


@workflow
async def again(ctx: Context, left: int) -> str:
    if left:
        ctx.continue_as_new(left - 1)
    return secret("output after all")


@workflow
async def everything(ctx: Context, card: str) -> list[object]:
    ctx.set_status(secret("status"), progress=0.5)
    ctx.set_state({"card": secret("state")})
    receipt = await ctx.step("charge").retry(QUICKLY).run(charge, card)
    try:
        await ctx.step("refuse").run(refuse, card)
    except StepError as error:
        message = error.error.message
    return [receipt, message, await ctx.wait_for(approved), await ctx.child(child, secret("input of a child"))]


@workflow
async def fails(ctx: Context, card: str) -> None:
    raise RuntimeError(secret("failure of a run"))


@workflow
async def counts(ctx: Context) -> int:
    return await ctx.wait_for(number)


WORKFLOWS = [everything, child, fails, counts, again]


async def use_everything(server: Server, codec: AesGcm) -> None:
    """A program with all that user code can say, with failures and retries; and what its author reads of it."""
    attempts["charge"] = 0
    address = server.grpc_address
    async with Worker(address, workflows=WORKFLOWS, codec=codec), Kagzi.connect(address, codec=codec) as client:
        run = await client.start(everything, secret("input"))
        await until(lambda: _has_status(run))
        await run.signal(approved, secret("signal"))
        message = secret("refused")
        child_output = secret(f"output of a child with {secret('input of a child')}")
        assert await run.result() == [{"receipt": secret("output of a step")}, message, secret("signal"), child_output]
        info = await run.info()
        assert (info.status_text, info.input, info.encoding) == (secret("status"), f'"{secret("input")}"'.encode(), "")
        assert await run.state() == {"card": secret("state")}
        steps = {step.id: step for step in await run.steps()}
        assert steps["charge"].details == f'{{"progress":"{secret("heartbeat")}"}}'.encode()
        assert [each.error.cause.message for each in steps["charge"].earlier if each.error.cause] == [
            repr(secret("cause"))
        ] * 2
        arguments = f'{{"card":"{secret("input")}"}}'.encode()
        assert [each.input for each in steps["charge"].earlier] == [arguments] * 2
        logs = await until(lambda: _logs_of(run))
        assert [line.text for line in logs.lines] == [f"{LOGGED} nput"] * 3
        refused = steps["refuse"].error_detail
        assert refused is not None
        assert refused.metadata == {"code": "E7", "details": f'{{"card":"{secret(secret("input"))}"}}'}
        assert "in refuse" in refused.traceback
        failed = await client.start(fails, secret("input"))
        with pytest.raises(RunError, match=secret("failure of a run")):
            await failed.result()
        assert SECRET in str(await failed.explain())
        assert await client.run(again, 2) == secret("output after all")
        await client.schedule("daily").workflow(child).cron("0 3 * * *").input(secret("input of a schedule"))
        assert (await client.schedules.get("daily")).input_data == secret("input of a schedule")
        paused = await client.start(counts)
        await client.signal(paused.id, "number", secret("signal that does not fit"))
        await until(lambda: _is_paused(paused))
        assert "does not fit int" in str((await paused.info()).problem)
        events = [event async for event in run.events()]
        assert secret("output of a step") in str(events)


async def _has_status(run: Any) -> bool:
    return bool((await run.info()).status_text)


async def _logs_of(run: Any) -> Any:
    logs = await run.logs()
    return logs if len(logs.lines) == 3 else None


async def _is_paused(run: Any) -> bool:
    return (await run.info()).status is RunStatus.PAUSED


async def stored(database: str) -> bytes:
    """All that the database holds, as bytes."""
    if database.startswith("sqlite:///"):
        path = Path(database.removeprefix("sqlite:///"))
        return b"".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")))
    connection = await asyncpg.connect(database)
    try:
        tables = await connection.fetch("SELECT format('%I.%I', schemaname, tablename) FROM pg_tables")
        parts: list[bytes] = []
        for (table,) in tables:
            if table.startswith(("pg_catalog.", "information_schema.")):
                continue
            for row in await connection.fetch(f"SELECT * FROM {table}"):
                parts += [each if isinstance(each, bytes) else str(each).encode() for each in row.values()]
        return b"\n".join(parts)
    finally:
        await connection.close()


@pytest.mark.parametrize("codec", [CODEC, STRICT], ids=["", "strict"])
async def test_neither_database_nor_logs_hold_clear_text(
    start_server: StartServer, database_url: str, caplog: pytest.LogCaptureFixture, codec: AesGcm
) -> None:
    caplog.set_level(logging.DEBUG)
    server = await start_server(database_url)
    await use_everything(server, codec)
    content = await stored(database_url)
    for written in (
        SECRET.encode(),
        LOGGED.encode(),
        base64.b64encode(SECRET.encode()),
        SECRET.encode().hex().encode(),
    ):
        assert written not in content
    assert content.count(b"aes-gcm") > 20
    assert SECRET not in caplog.text
    assert "step 'charge' failed, attempt 1 of 5" in caplog.text
    assert "in charge" in caplog.text  # the frames are there


async def test_the_same_program_without_a_codec_is_readable(start_server: StartServer, database_url: str) -> None:
    """So that the search above means something."""
    server = await start_server(database_url)
    async with Worker(server.grpc_address, workflows=WORKFLOWS), Kagzi.connect(server.grpc_address) as client:
        await client.run(child, secret("input"))
    assert (await stored(database_url)).count(SECRET.encode()) >= 2


# --- who has no key, and may write -----------------------------------------------------------------------------------


@workflow
async def passes_on(ctx: Context, _: int) -> str:
    return await ctx.child(child, "x", id=f"{ctx.workflow_id}/child", labels=dict(ctx.labels))


async def test_what_others_encrypted_is_not_decrypted_where_anybody_may_put_it(
    start_server: StartServer, database_url: str
) -> None:
    """A worker would send it back in clear: in the id of a child, or in its labels."""
    address = (await start_server(database_url)).grpc_address
    async with (
        Worker(address, workflows=[child, fails, passes_on], codec=CODEC),
        Kagzi.connect(address, codec=CODEC) as client,
        Kagzi.connect(address) as stranger,
    ):
        failed = await client.start(fails, "input")
        with pytest.raises(RunError):
            await failed.result()
        async with Kagzi.connect(address, codec=AesGcm({"other": SECOND})) as outsider:
            seen = await outsider.get(failed.id).info()
            assert seen.error is not None
            stolen = seen.error.message
        assert stolen.startswith("[encoded ")
        run = await stranger.start(passes_on, 1, id=stolen, labels={"a": stolen})
        assert secret("output of a child") in await client.get(run.id, passes_on).result()
        assert (await client.get(run.id).info()).workflow_id == stolen
    assert SECRET.encode() not in await stored(database_url)


async def test_strict_refuses_what_is_not_encrypted_and_pauses(start_server: StartServer) -> None:
    address = (await start_server()).grpc_address
    async with (
        Worker(address, workflows=[child], codec=STRICT),
        Kagzi.connect(address) as stranger,
        Kagzi.connect(address, codec=CODEC) as lax,
    ):
        for client, words in (
            (stranger, "it is not encrypted, and the codec here is strict"),
            (lax, "encrypted as any"),
        ):
            run = await client.start(child, "plain")
            await until(lambda: _is_paused(run))  # noqa: B023
            problem = (await run.info()).problem
            assert problem is not None
            assert words in problem.message


def test_strict_binds_what_it_is_and_lax_codecs_still_read_it() -> None:
    start = StartWorkflowRequest(workflow_type="x", input=Payload(data=b"1"), context=Payload(data=b"{}"))
    MessageCodec(STRICT).encode(start)
    task = Task(input=start.context, context=start.context)
    MessageCodec(STRICT).decode(task)
    assert "encrypted as context" in task.input.metadata["undecodable"]
    assert "where only input may" in task.input.metadata["undecodable"]
    assert task.context.data == b"{}"
    start.context.metadata["encoding-kind"] = "input"  # it is authenticated, too
    task = Task(input=start.context)
    MessageCodec(STRICT).decode(task)
    assert "does not decrypt it" in task.input.metadata["undecodable"]
    MessageCodec(CODEC).decode(start)
    assert (start.input.data, dict(start.input.metadata)) == (b"1", {})


# --- keys -------------------------------------------------------------------------------------------------------------


async def test_keys_are_rotated_and_old_payloads_stay_readable(start_server: StartServer) -> None:
    server = await start_server()
    address = server.grpc_address
    both = AesGcm({"2025": FIRST, "2026": SECOND}, current="2026")
    async with Kagzi.connect(address) as plain, Kagzi.connect(address, codec=CODEC) as old:
        runs = [await plain.start(child, "a"), await old.start(child, "b")]
    async with Worker(address, workflows=[child], codec=both), Kagzi.connect(address, codec=both) as client:
        runs = [client.get(run.id, child) for run in runs] + [await client.start(child, "c")]
        assert [await run.result() for run in runs] == [secret(f"output of a child with {name}") for name in "abc"]
    async with Kagzi.connect(address, codec=CODEC) as old:
        with pytest.raises(
            PreconditionFailed, match=r"encrypted with the key '2026', and the codec here has '2025'. Add"
        ):
            await old.get(runs[2].id).result()


async def test_a_run_that_cannot_be_decoded_is_paused_and_goes_on_with_the_key(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its input, what it has recorded, a signal, and what a child returned: nothing of it fails."""
    address = (await start_server()).grpc_address
    new = AesGcm({"2026": SECOND})
    wrong = AesGcm({"2025": SECOND})
    async with Kagzi.connect(address, codec=CODEC) as client:
        run = await client.start(everything, secret("input"), id="order")
        for codec, words in ((None, "no codec here"), (new, "'2025', and the codec here has '2026'"), (wrong, "other")):
            async with Worker(address, workflows=WORKFLOWS, codec=codec):
                await until(lambda: _is_paused(run))
            problem = (await run.info()).problem
            assert problem is not None
            assert "input of workflow 'everything' cannot be decoded" in problem.message
            assert words in problem.message or words == "other"
            assert f"kagzi resume {run.id}" in problem.message
            await run.resume()
        assert "is paused, because a recorded value cannot be decoded" in caplog.text
        async with Worker(address, workflows=WORKFLOWS, codec=CODEC):
            await until(lambda: _waits_for_signal(run))
        async with Worker(address, workflows=WORKFLOWS, codec=new):
            async with Kagzi.connect(address, codec=new) as other:
                await other.signal("order", approved, secret("signal"))
            await until(lambda: _is_paused(run))
        await run.resume()
        both = AesGcm({"2025": FIRST, "2026": SECOND}, current="2026")
        async with Worker(address, workflows=WORKFLOWS, codec=both), Kagzi.connect(address, codec=both) as whole:
            result = await whole.get(run.id).result()
            assert result[2] == secret("signal")


async def _waits_for_signal(run: Any) -> bool:
    return (await run.info()).status is RunStatus.SLEEPING


async def test_a_codec_that_fails_costs_time_and_no_run(start_server: StartServer) -> None:
    class Shaky:
        """Like a service of keys that is away for a while."""

        failures = 3

        def encode(self, data: bytes) -> tuple[bytes, Mapping[str, str]]:
            if self.failures and b"output" in data:
                self.failures -= 1
                raise OSError("the keys are away")
            return CODEC.encode(data)

        def decode(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
            return CODEC.decode(data, metadata)

    address = (await start_server()).grpc_address
    shaky = Shaky()
    async with Worker(address, workflows=[child], codec=shaky), Kagzi.connect(address, codec=CODEC) as client:
        assert await client.run(child, "a") == secret("output of a child with a")
    assert shaky.failures == 0


async def test_commands_show_what_is_encoded_as_what_it_is_and_decode_it_with_the_codec(
    start_server: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = (await start_server()).grpc_address
    (tmp_path / "keys_of_a_test.py").write_text(
        f"from kagzi.crypto import AesGcm\ncodec = AesGcm({{'2025': {FIRST!r}}})\nnumber = 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    async with Worker(address, workflows=WORKFLOWS, codec=CODEC):

        async def command(*words: str) -> str:
            done = await asyncio.to_thread(kagzi_inline, *words, "--address", address)
            return f"{done.stdout}{done.stderr}"

        codec = ("--codec", "keys_of_a_test:codec")
        started = await command("start", "child", secret("input"), "--id", "a", "--wait", *codec)
        assert secret(f"output of a child with {secret('input')}") in started
        assert '{"$encoding": "aes-gcm", "$bytes": 44}' in await command("get", "a")
        assert secret("input") in await command("get", "a", *codec)
        await command("start", "fails", "x", "--id", "b", "--wait", *codec)
        assert "RuntimeError: [encoded: aes-gcm, 2025, " in await command("get", "b")
        assert secret("failure of a run") in await command("explain", "b", *codec)
        for wrong, words in (
            ("keys_of_a_test", "names no codec"),
            ("keys_of_a_test:number", "has no encode and decode"),
        ):
            assert words in await command("list", "--codec", wrong)


def test_keys_that_cannot_be_used_are_refused() -> None:
    for keys, current, words in (
        ({}, None, "not the name of one of the keys"),
        ({"a": FIRST, "b": SECOND}, None, "There are: 'a', 'b'"),
        ({"a": FIRST}, "b", "current='b'"),
        ({"a": b"short"}, None, r"has 5 bytes; AES takes 16, 24 or 32. Make one: AesGcm.new_key\(\)"),
        ({"a": "text"}, None, "is a str. Give bytes"),
        ({"": FIRST}, None, "name '' of a key"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            AesGcm(keys, current=current)  # type: ignore[arg-type]
    assert repr(FIRST) not in repr(CODEC)


async def test_what_is_no_codec_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has no encode and decode"):
        await Kagzi.connect(":memory:", codec=object())  # type: ignore[arg-type]
