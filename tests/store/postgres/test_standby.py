"""Nothing is acknowledged from a read that shows what the synchronous standby may not have. Real primary, real
standby."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.records import RunFilter, RunLease
from kagzi.core.run.commands import Command, CompleteRun
from kagzi.core.states import RunStatus
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection import barrier, target
from kagzi.system import SystemRng
from tests.support.polling import until
from tests.support.postgres import Databases
from tests.support.standby import WAITING, Pair, connected

from .verbs import NOW, OUTPUT, begin, complete, running, signal, start, write

pytestmark = pytest.mark.xdist_group("standby")  # they share a pair of servers

STATE = "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM steps WHERE kind = 1 AND seq > 0)"

Fault = Callable[[Pair, PostgresStore], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


@pytest.fixture
async def url(pair: Pair) -> AsyncIterator[str]:
    await pair.attach()
    url = Databases(pair.url).create()
    await PostgresMigrator(url).migrate()
    yield url
    await pair.attach()  # whoever still waits in this database can go on


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    store = await opened(url)
    yield store
    await store.close()


async def opened(url: str) -> PostgresStore:
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    return store


# --- what can befall a commit that waits ------------------------------------------------------------------------------


async def restart(pair: Pair, store: PostgresStore) -> None:
    pair.restart_in_place()


async def cancel(pair: Pair, store: PostgresStore) -> None:
    await strike(pair, "pg_cancel_backend")


async def terminate(pair: Pair, store: PostgresStore) -> None:
    await strike(pair, "pg_terminate_backend")


async def strike(pair: Pair, function: str) -> None:
    async with connected(pair.url) as stranger:
        struck = await stranger.fetch(WAITING.replace("count(*)", f"{function}(pid)"))
        assert [row[0] for row in struck] == [True]


FAULTS = {"restart in place": restart, "pg_cancel_backend": cancel, "pg_terminate_backend": terminate}


async def start_of(store: PostgresStore) -> Command:
    await running(store, 1)  # so that there is a namespace: to make it is a commit of its own
    return start()


async def completion_of(store: PostgresStore) -> Command:
    [leased] = await running(store, 1)
    await write(store, begin(leased, "charge"))
    return complete(leased, "charge")


COMMANDS = {"start": start_of, "completion": completion_of}


async def state(url: str) -> int:
    async with connected(url) as stranger:
        return int(await stranger.fetchval(STATE))


async def answered_alone(pair: Pair, answer: Coroutine[Any, Any, object], *, waiting: int = 1) -> bool:
    """Whether the answer comes although no standby is there to confirm it; otherwise there are so many that wait for
    one. When it is there again, the answer comes; returns when the standby shows what the answer waited for."""
    answering = asyncio.create_task(answer)
    await answered_or_waiting(pair, answering, waiting)
    alone = answering.done()
    if not alone:
        await pair.attach()
    await asyncio.wait_for(answering, 60)
    await pair.replayed()
    return alone


async def answered_or_waiting(pair: Pair, answering: asyncio.Task[Any], waiting: int) -> None:
    waits = asyncio.create_task(pair.waiting(waiting))
    await asyncio.wait((answering, waits), return_when=asyncio.FIRST_COMPLETED)
    waits.cancel()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_repeated_command_waits_for_the_standby(
    pair: Pair, url: str, store: PostgresStore, fault: str, command: str
) -> None:
    request = await COMMANDS[command](store)
    before = await state(url)
    await commit_here_only(pair, store, request, FAULTS[fault])
    assert await state(url) == before + 1, "the fault did not hit: the commit is not visible"
    assert await state(pair.on_standby(url)) == before, "the fault did not hit: the standby has it"
    assert not await answered_alone(pair, write(store, request))
    assert await state(pair.on_standby(url)) == before + 1


async def test_a_commit_that_stopped_waiting_is_noticed_by_roles_that_want_no_warnings_and_may_do_little(
    pair: Pair, url: str
) -> None:
    async with connected(url) as stranger:
        await stranger.execute("SET synchronous_commit = on")
        await stranger.execute("CREATE ROLE kagzi_plain LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO kagzi_plain")
        await stranger.execute("ALTER ROLE kagzi_plain SET client_min_messages = error")
    store = await opened(url.replace("postgres@", "kagzi_plain@"))
    request = await start_of(store)
    await commit_here_only(pair, store, request, cancel)
    assert not await answered_alone(pair, write(store, request))
    await store.close()


async def test_without_the_barrier_the_loss_is_seen(
    pair: Pair, url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier.Barrier, "needed", False)
    request = await start_of(store)
    await commit_here_only(pair, store, request, restart)
    assert await answered_alone(pair, write(store, request))
    assert await state(url) > await state(pair.on_standby(url))


async def commit_here_only(pair: Pair, store: PostgresStore, command: Command, fault: Fault) -> None:
    """The command is committed here, and only here: nobody is told so."""
    await pair.detach()
    writing = asyncio.create_task(write(store, command))
    await pair.waiting()
    await fault(pair, store)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(writing, 60)


# --- other servers ----------------------------------------------------------------------------------------------------


Call = Callable[[PostgresStore], Coroutine[Any, Any, object]]


def same_start(leased: RunLease) -> tuple[Call, Call]:
    request = start()
    return (lambda store: write(store, request)), (lambda other: write(other, request))


def same_signal(leased: RunLease) -> tuple[Call, Call]:
    sent = signal("go")

    def send(store: PostgresStore) -> Coroutine[Any, Any, object]:
        return store.signal_run("default", run_id=leased.run.run_id, signal=sent, now=NOW)

    return send, send


def end_and_wait(leased: RunLease) -> tuple[Call, Call]:
    ending = CompleteRun(run=leased.run, lease=leased.lease, output=OUTPUT)
    return (lambda store: write(store, ending)), (lambda other: other.endings_of([leased.run]))


def end_and_get(leased: RunLease) -> tuple[Call, Call]:
    return end_and_wait(leased)[0], (lambda other: other.get_run("default", run_id=leased.run.run_id))


@pytest.mark.parametrize("what", [same_start, same_signal, end_and_wait, end_and_get])
@pytest.mark.parametrize("options", ["", "&pgbouncer=true"], ids=["direct", "pooled"])
async def test_another_server_does_not_return_what_a_lost_backend_left_behind(
    pair: Pair, url: str, store: PostgresStore, options: str, what: Callable[[RunLease], tuple[Call, Call]]
) -> None:
    """Its own connections have lost nothing: that something is not replicated can be known from nothing but a
    barrier."""
    other = await opened(url + options)
    [leased] = await running(store, 1)
    write_it, read_it = what(leased)
    await other.get_run("default", run_id=leased.run.run_id)  # every connection that is needed is there
    await write(other, start())
    await pair.detach()
    writing = asyncio.create_task(write_it(store))
    await pair.waiting()
    await terminate(pair, store)
    with pytest.raises(Unavailable):
        await asyncio.wait_for(writing, 60)
    assert not await answered_alone(pair, read_it(other))
    await other.close()


async def test_looking_needs_no_standby(pair: Pair, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do those who write, and lose their connections with it, take it away from those who look."""
    monkeypatch.setattr(target, "call_timeout_s", lambda _: 0.5)
    monkeypatch.setattr(barrier, "CROSSING_TIMEOUT_S", 0.5)
    store = await opened(url)
    [leased] = await running(store, 1)
    await store.signal_run("default", run_id=leased.run.run_id, signal=signal("go"), now=NOW)
    await store.list_runs("default", RunFilter(), None, 10)
    await pair.detach()
    pauses = [store.pause_run(leased.run, "a moment", NOW) for _ in range(8)]
    assert all(isinstance(each, Unavailable) for each in await asyncio.gather(*pauses, return_exceptions=True))
    run = await store.get_run("default", run_id=leased.run.run_id)
    assert run is not None
    assert run.status is RunStatus.RUNNING
    assert len((await store.list_runs("default", RunFilter(), None, 10)).rows) == 1
    assert await store.endings_of([leased.run]) == [RunStatus.RUNNING]
    assert await pair.waiting() <= len(store._questions.links), "backends are left behind"
    await store.close()


# --- commits are never cancelled --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", ["driver timeout", "cancelled task"])
async def test_who_gives_up_waiting_does_not_make_the_commit_visible(
    pair: Pair, url: str, monkeypatch: pytest.MonkeyPatch, how: str, command: str
) -> None:
    if how == "driver timeout":
        monkeypatch.setattr(target, "call_timeout_s", lambda _: 1.0)
    store = await opened(url)
    request = await COMMANDS[command](store)
    before = await state(url)
    await pair.detach()
    writing = asyncio.create_task(write(store, request))
    await pair.waiting()
    if how == "cancelled task":
        writing.cancel()
    with pytest.raises((Unavailable, asyncio.CancelledError)):
        await asyncio.wait_for(writing, 60)
    assert await pair.waiting() == 1, "the commit no longer waits"
    assert await state(url) == before
    assert not await answered_alone(pair, write(store, request), waiting=2)
    assert await state(pair.on_standby(url)) == before + 1
    await store.close()


async def test_callers_that_hang_up_leave_no_backends_behind(pair: Pair, url: str, store: PostgresStore) -> None:
    await pair.detach()
    pair.restart_in_place()
    for _ in range(20):
        asking = asyncio.create_task(store.list_runs("default", RunFilter(), None, 10))
        await answered_or_waiting(pair, asking, 1)
        asking.cancel()
        await asyncio.wait((asking,))
    assert await pair.waiting() == 1
    await pair.attach()
    assert len((await store.list_runs("default", RunFilter(), None, 10)).rows) == 0


async def test_a_new_connection_says_which_standby_it_waits_for_and_takes_its_barrier_back(
    pair: Pair, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barrier, "CROSSING_TIMEOUT_S", 0.5)
    await pair.detach()
    with pytest.raises(Unavailable, match=r"no synchronous standby .*'FIRST 1 \(standby\)'"):
        await opened(url)
    async with connected(url) as stranger:
        await until(lambda: stranger.fetchval(WAITING.replace("count(*)", "count(*) = 0")))
    await pair.attach()
    await (await opened(url)).close()


async def test_a_standby_that_is_named_later_is_waited_for(pair: Pair, url: str) -> None:
    async with connected(url) as stranger:
        await stranger.execute("ALTER SYSTEM RESET synchronous_standby_names")
        await stranger.execute("SELECT pg_reload_conf()")
        await until(lambda: stranger.fetchval("SELECT current_setting('synchronous_standby_names') = ''"))
    store = await opened(url)
    [leased] = await running(store, 1)
    await write(store, CompleteRun(run=leased.run, lease=leased.lease, output=OUTPUT))
    await pair.attach()
    await store.poll([], NOW)
    await pair.detach()
    assert not await answered_alone(pair, store.endings_of([leased.run]))
    await store.close()


async def test_without_a_standby_no_statement_runs_twice(postgres_url: str) -> None:
    await PostgresMigrator(postgres_url).migrate()
    store = await opened(postgres_url)
    request = start()
    await write(store, request)
    statements_before, committed = store.statements, store.transactions
    await write(store, request)
    assert (store.statements - statements_before, store.transactions - committed) == (
        2,
        1,
    )  # as before: insert, then look
    await store.close()
