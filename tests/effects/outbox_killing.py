"""kill -9 of servers while they drain an outbox, as often as is wanted, and what came of it.

A trigger in the user's database makes each delete take a while, and shows whose it is by a lock: that server is killed,
between Kagzi's commit of the starts and that of the deletes. A start that finds its run proves that it was there.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import NamedTuple

import asyncpg

from kagzi import Kagzi
from tests.support.polling import until
from tests.support.processes import Processes, ServerProcess

from .outboxes import greet, rows

OPTIONS = ("--poll-interval", "1s")
_EXISTING = re.compile(r'kagzi_outbox_starts_total\{outcome="existing"\} (\d+)')
_LOCK = 4_711
# Servers tell themselves apart by a setting of their connections that changes nothing here.
_PLACE = "extra_float_digits"
_SLOW = f"""
create function slowly() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock({_LOCK}, current_setting('{_PLACE}')::int);
    perform pg_sleep(0.5);
    return null;
end $$;
create trigger slowly before delete on kagzi_outbox for each statement execute function slowly();
"""
_DELETING = f"select objid from pg_locks where locktype = 'advisory' and classid = {_LOCK} and granted limit 1"


class Figures(NamedTuple):
    committed: int  # starts in transactions that were committed
    rolled_back: int
    kills: int
    kills_between: int  # after which another server found runs of rows that were not deleted
    runs: list[str]  # the workflow ids of all runs

    @property
    def doubles(self) -> int:
        return len(self.runs) - len(set(self.runs))

    def missing(self, expected: Iterable[str]) -> set[str]:
        return set(expected) - set(self.runs)


async def kill_servers(processes: Processes, database: str, outbox: str, *, kills: int) -> tuple[Figures, set[str]]:
    """Rows are written and servers are killed, until so many of them were between the two commits; on a busy machine a
    kill may come too late. Two servers are there at any time."""

    async def serve(place: int) -> ServerProcess:
        sign = "&" if "?" in outbox else "?"
        return await processes.server(database, *OPTIONS, "--outbox", f"{outbox}{sign}{_PLACE}={place}")

    servers = {place: await serve(place) for place in (0, 1)}
    expected = {"first"}
    between = number = 0
    writer = await asyncpg.connect(outbox)
    watcher = await asyncpg.connect(outbox)
    try:
        async with Kagzi.connect(":memory:") as client:  # it writes into the table and asks no server
            await _write(client, writer, expected, commit=True)
            await until(lambda: _drained(outbox), what="the first start is drained")
            await writer.execute(_SLOW)
            while between < kills and number < 3 * kills + 2:
                number += 1
                before = {place: await _existing(server) for place, server in servers.items()}
                batch = {f"{number}-{each}" for each in range(5)}
                await _write(client, writer, {f"never-{number}"}, commit=False)
                await _write(client, writer, batch, commit=True)
                expected |= batch
                (place,) = await until(lambda: watcher.fetchrow(_DELETING), every_s=0.005, what="a server deletes rows")
                victim, survivor = servers[place], servers[1 - place]
                victim.kill()
                await victim.wait()
                await until(lambda: _drained(outbox), what="the other server drains what is left")
                between += await _existing(survivor) > before[1 - place]
                servers[place] = await serve(place)
        async with Kagzi.connect(servers[0].grpc) as client:
            runs = [run.workflow_id async for run in client.list()]
    finally:
        await writer.close()
        await watcher.close()
    return Figures(len(expected), number, number, between, runs), expected


async def _write(client: Kagzi, writer: asyncpg.Connection, ids: set[str], *, commit: bool) -> None:
    transaction = writer.transaction()
    await transaction.start()
    for each in sorted(ids):
        await client.start_in(writer, greet, each, id=each)
    await (transaction.commit() if commit else transaction.rollback())


async def _drained(outbox: str) -> bool:
    return not await rows(outbox)


async def _existing(server: ServerProcess) -> int:
    """How many starts of this server found their runs, since it began."""
    reader, writer = await asyncio.open_connection(*server.http.removeprefix("http://").rsplit(":", 1))
    try:
        writer.write(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        page = (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
    sample = _EXISTING.search(page)
    assert sample is not None, page[:500]
    return int(sample[1])
