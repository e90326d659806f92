"""What a transaction around a batch costs: why a batch that does not fit aborts itself. `python -m
tests.store.postgres.measure_abort`"""

import asyncio
import time

import asyncpg

from tests.support.postgres import temporary_postgres

_BATCHES = 1_500
_RUNS = list(range(1, 21))


async def measure(url: str) -> None:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    await connection.execute("CREATE TABLE r AS SELECT i AS id, 0 AS seq FROM generate_series(1, 100) AS i")
    batch = await connection.prepare("UPDATE r SET seq = seq + 1 WHERE id = ANY ($1::int[]) RETURNING seq")

    async def in_transaction() -> None:
        await connection.execute("BEGIN")
        await batch.fetch(_RUNS)
        await connection.execute("COMMIT")

    for _ in range(3):
        for name, write in (("one statement", lambda: batch.fetch(_RUNS)), ("in a transaction", in_transaction)):
            begun = time.process_time()
            for _ in range(_BATCHES):
                await write()
            spent_us = (time.process_time() - begun) / _BATCHES * 1e6
            print(f"{name}: {spent_us:.0f} us of CPU on this side for a batch of {len(_RUNS)}")
    await connection.close()


if __name__ == "__main__":
    with temporary_postgres() as url:
        asyncio.run(measure(url))
