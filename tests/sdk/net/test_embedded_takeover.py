"""An embedded file whose server is killed: another process takes over, and nobody sees an error."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

from kagzi import Kagzi, Worker, embedded
from tests.sdk.net.test_real_server import ALL, WAIT_S, greet, nap
from tests.support.lateness import measured_lateness

PROGRAM = """
import asyncio, sys, time
from pathlib import Path
from kagzi import Context, Kagzi, Worker, workflow

ledger = Path(sys.argv[2])

def did(what):
    with ledger.open("a") as file:
        file.write(what + "\\n")

async def first():
    did("first")

async def second():
    did("second")
    print("in second", flush=True)
    if sys.argv[3] == "hang":
        await asyncio.Event().wait()

@workflow
async def two(ctx: Context) -> str:
    await ctx.step("first").run(first)
    await ctx.step("second").run(second)
    return "done"

async def main():
    async with Worker(sys.argv[1], workflows=[two]), Kagzi.connect(sys.argv[1]) as client:
        run = await client.start(two, None, id="two") if sys.argv[3] == "hang" else client.get("two", two)
        entered = time.monotonic()
        print(await run.result(), time.monotonic() - entered, flush=True)

asyncio.run(main())
"""

LEASE_S = 15.0

OPENER = """
import asyncio, sys
from kagzi import Kagzi

async def main():
    async with Kagzi.connect(sys.argv[1]):
        print("open", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_killed_opener_is_replaced(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/kagzi.db"
    opener = await asyncio.create_subprocess_exec(sys.executable, "-c", OPENER, address, stdout=PIPE)
    assert opener.stdout is not None
    async with asyncio.timeout(WAIT_S):
        assert await opener.stdout.readline() == b"open\n"
        async with Worker(address, workflows=ALL), Kagzi.connect(address) as client:
            assert await client.run(greet, "ada") == "HELLO, ADA!"
            napping = [asyncio.create_task(client.run(nap, f"n{n}")) for n in range(20)]
            opener.kill()
            await opener.wait()
            began = time.monotonic()
            async with measured_lateness() as lateness:
                assert await client.run(greet, "bob") == "HELLO, BOB!"
            assert time.monotonic() - began < 5 + 10 * lateness.worst_s
            assert await asyncio.gather(*napping) == [f"n{n}" for n in range(20)]


async def test_a_server_that_fails_in_its_own_process_is_replaced_there(tmp_path: Path) -> None:
    path = tmp_path / "kagzi.db"
    address = f"sqlite:///{path}"
    async with asyncio.timeout(WAIT_S), Worker(address, workflows=ALL), Kagzi.connect(address) as client:
        napping = [asyncio.create_task(client.run(nap, f"n{n}")) for n in range(20)]
        assert await client.run(greet, "ada") == "HELLO, ADA!"
        failed = embedded._hosts[str(path)]
        failed.end()
        assert await client.run(greet, "bob") == "HELLO, BOB!"
        assert await asyncio.gather(*napping) == [f"n{n}" for n in range(20)]
        assert embedded._hosts[str(path)] is not failed


async def test_a_killed_program_goes_on_where_it_was_without_waiting_for_its_own_leases(tmp_path: Path) -> None:
    """Nobody but the dead process can have held them: a restart cost a whole lease."""
    address, ledger = f"sqlite:///{tmp_path}/kagzi.db", tmp_path / "ledger"
    program = (sys.executable, "-c", PROGRAM, address, str(ledger))
    killed = await asyncio.create_subprocess_exec(*program, "hang", stdout=PIPE)
    assert killed.stdout is not None
    async with asyncio.timeout(WAIT_S):
        assert await killed.stdout.readline() == b"in second\n"
        killed.kill()
        await killed.wait()
        again = await asyncio.create_subprocess_exec(*program, "go on", stdout=PIPE)
        output, _ = await again.communicate()
    reported, done, took_s = output.decode().rsplit(maxsplit=2)
    assert (reported, done) == ("in second", "done")
    assert float(took_s) < LEASE_S - 3  # no lease ends sooner than that after a start
    assert ledger.read_text().split() == ["first", "second", "second"]  # what was begun, and nothing else, ran again
    async with Kagzi.connect(address) as client:
        events = [event async for event in client.get("two").events()]
    assert events[-1]["kind"] == "run_completed"
