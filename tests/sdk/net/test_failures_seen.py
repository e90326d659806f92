"""A program that has set up no logging, and catches nothing: what it shows of a step that fails in it."""

import re
import subprocess
import sys
from pathlib import Path

from tests.support.kagzi_process import clean_environment

PROGRAM = """
import asyncio
from kagzi import Context, Kagzi, Retry, Worker, workflow

def price(item: str) -> int:
    return {}[item]

@workflow
async def checkout(ctx: Context, item: str) -> int:
    return await ctx.step("price", retry=Retry.fixed(2, "1ms").retry_on([KeyError])).run(price, item)

async def main() -> None:
    async with Worker(":memory:", workflows=[checkout]), Kagzi.connect(":memory:") as client:
        await client.run(checkout, "tea", id="order-1")

asyncio.run(main())
"""


def test_each_attempt_is_a_line_and_the_error_shows_the_steps_own_frames(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "shop.py"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    logged, _, uncaught = done.stderr.partition("\nTraceback (most recent call last):\n")
    heads = [line for line in logged.splitlines() if not line.startswith("  | ")]
    run_id = re.search(r"run ([0-9a-f-]{36})", heads[0])
    assert run_id is not None
    about = f"checkout 'order-1', run {run_id[1]}: "
    assert [re.sub(r"retrying (in \d ms|at once)", "retrying SOON", line) for line in heads] == [
        f"{about}step 'price' failed, attempt 1 of 2: retrying SOON. KeyError: 'tea'",
        f"{about}step 'price' failed, attempt 2 of 2: no attempts left. KeyError: 'tea'",
        f"{about}the run failed in step 'price'. KeyError: 'tea'",
    ]
    assert logged.count('shop.py", line 6, in price') == 2
    assert "kagzi/sdk" not in logged
    assert uncaught.count('shop.py", line 6, in price') == 1
    assert uncaught.index("RunError: run") < uncaught.index("Recorded by the worker in step 'price':")
    assert uncaught.endswith("  | KeyError: 'tea'\n")
