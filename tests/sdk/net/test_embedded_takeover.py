"""An embedded file whose server is killed: another process takes over, and nobody sees an error."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from pathlib import Path

from kagzi import Kagzi, Worker
from tests.sdk.net.test_real_server import ALL, WAIT_S, greet, nap

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
            assert await client.run(greet, "bob") == "HELLO, BOB!"
            assert time.monotonic() - began < 5
            assert await asyncio.gather(*napping) == [f"n{n}" for n in range(20)]
