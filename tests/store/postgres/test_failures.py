"""What is an outage, what is contention and what is a fault; and that each of them is treated as such on every
connection."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest

from kagzi.core.errors import InvalidArgument, StatementFailed, StoreBroken, Unavailable
from kagzi.core.records import RunFilter, RunLease, Served
from kagzi.core.run.outcomes import Begun, Busy, Failed, Outcome, Recorded, Started
from kagzi.store.postgres import PostgresStore
from kagzi.store.postgres.connection import connections as links
from kagzi.store.postgres.connection.connection import QUERY_SETTINGS
from kagzi.store.postgres.connection.failures import CONTENTION, Failure, failure_of, failure_of_state, fault
from kagzi.store.protocol import Claimed, Want
from kagzi.system import SystemRng

from .verbs import LEASE_US, NOW, begin, complete, running, signal, start, write

LOST, BROKEN, CONTENDED, FAULT = Failure.LOST, Failure.BROKEN, Failure.CONTENDED, Failure.FAULT

# SQLSTATE, and what it is. Classes are meant by two messages: any state of theirs that is not named itself.
RULES = {
    "08": LOST,
    "08006": LOST,
    "28P01": LOST,
    "3D000": LOST,
    "53100": LOST,
    "53200": LOST,
    "53300": LOST,
    "57014": LOST,
    "57P01": LOST,
    "57P02": LOST,
    "57P03": LOST,
    "57P05": LOST,
    "25006": LOST,
    "25P03": LOST,
    "25P04": LOST,
    "26000": LOST,
    "40003": LOST,
    "F0000": LOST,
    "58": BROKEN,
    "58030": BROKEN,
    "58P01": BROKEN,
    "XX": BROKEN,
    "XX000": BROKEN,
    "XX001": BROKEN,
    "XX002": BROKEN,
    "40": CONTENDED,
    "40001": CONTENDED,
    "40P01": CONTENDED,
    "55P03": CONTENDED,
    "55006": CONTENDED,
    "": FAULT,
    "0A000": FAULT,
    "21000": FAULT,
    "22001": FAULT,
    "23505": FAULT,
    "23514": FAULT,
    "25P02": FAULT,
    "42501": FAULT,
    "42703": FAULT,
    "42P01": FAULT,
    "42P05": FAULT,
    "54000": FAULT,
    "55000": FAULT,
    "P0001": FAULT,
}


@pytest.mark.parametrize(("sqlstate", "expected"), RULES.items())
def test_a_sqlstate_is_what_the_rule_says(sqlstate: str, expected: Failure) -> None:
    assert failure_of_state(sqlstate.ljust(5, "9") if len(sqlstate) == 2 else sqlstate) is expected


def test_every_error_of_the_driver_is_judged_by_its_state() -> None:
    judged = 0
    for _, cls in inspect.getmembers(asyncpg.exceptions, inspect.isclass):
        if issubclass(cls, asyncpg.PostgresError) and cls.sqlstate and cls is not asyncpg.InvalidCachedStatementError:
            assert failure_of(cls("words")) is failure_of_state(cls.sqlstate), cls
            if issubclass(cls, CONTENTION) and cls.sqlstate != "40003":
                assert failure_of(cls("words")) is CONTENDED, cls
            judged += 1
    assert judged > 200


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError("reset"), LOST),
        (TimeoutError(), LOST),
        (asyncpg.InterfaceError("connection is closed"), LOST),
        (asyncpg.InternalClientError("broken"), LOST),
        (asyncpg.InvalidCachedStatementError("cached plan must not change result type"), LOST),
        (asyncpg.exceptions.DataError("invalid input for query argument $1"), FAULT),
        (ValueError("no"), FAULT),
    ],
)
def test_what_the_driver_raises_by_itself(error: Exception, expected: Failure) -> None:
    assert failure_of(error) is expected


def test_a_fault_is_reported_without_the_words_of_the_database() -> None:
    translated = fault(asyncpg.exceptions.DataError('invalid input syntax for type uuid: "secret"'))
    assert isinstance(translated, InvalidArgument)
    assert "secret" not in translated.message
    assert isinstance(fault(asyncpg.UniqueViolationError("runs_pkey")), StatementFailed)


# --- on real connections ----------------------------------------------------------------------------------------------

Verb = Callable[[PostgresStore, RunLease], Awaitable[object]]

# Verbs that need `runs`, on each kind of connection.
VERBS: dict[str, Verb] = {
    "write": lambda store, leased: write(store, begin(leased, "a")),
    "start": lambda store, _: write(store, start()),
    "claim": lambda store, _: store.claim([Want("default", "ship", ("1",), "worker", 1)], 5, NOW, NOW + LEASE_US),
    "renew": lambda store, leased: store.renew([leased], NOW, NOW + LEASE_US),
    "cut": lambda store, leased: store.shorten_leases([leased], NOW + LEASE_US),
    "release": lambda store, leased: store.release([leased], NOW),
    "lose": lambda store, leased: store.lost_before_ack([leased], NOW, [NOW + 1]),
    "fire": lambda store, _: store.fire(NOW + 1, end_leases=True, limit=10),
    "poll": lambda store, _: store.poll([], NOW),
    "get": lambda store, leased: store.get_run("default", run_id=leased.run.run_id),
    "list": lambda store, _: store.list_runs("default", RunFilter(), None, 10),
    "count": lambda store, _: store.count_runs("default", RunFilter(), 10),
    "ends": lambda store, leased: store.endings_of([leased.run]),
    "events": lambda store, leased: store.events_of(leased.run, 0, 10),
    "marks": lambda store, leased: store.markers_of([leased.run]),
    "signal": lambda store, leased: store.signal_run(
        "default", run_id=leased.run.run_id, workflow_id="", signal=signal("go"), now=NOW
    ),
    "pause": lambda store, leased: store.pause_run(leased.run, "", NOW),
    "resume": lambda store, leased: store.resume_run(leased.run, NOW),
    "cancel": lambda store, leased: store.cancel_run(leased.run, "enough", NOW, NOW + 1),
    "terminate": lambda store, leased: store.terminate_run(leased.run, "enough", NOW),
    "retry": lambda store, leased: store.retry_run(leased.run, "", "request", NOW),
    "cascade": lambda store, _: store.cascade(NOW, NOW + 1, 10),
    "resume diverged": lambda store, _: store.resume_diverged("default", [Served("ship", "1")], "build", NOW),
    "delete": lambda store, leased: store.delete_runs("default", [leased.run.run_id], until=NOW),
    "depths": lambda store, _: store.queue_depths("default", "ship", cap=10),
    "figures": lambda store, _: store.roll_up(NOW),
}
# What a busy store may answer: that it is to be asked again.
AGAIN = (Busy, Claimed)


@pytest.fixture
async def impatient(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresStore]:
    """Questions wait for locks as shortly as everything else, so that many can be asked."""
    monkeypatch.setattr(links, "QUERY_SETTINGS", {**QUERY_SETTINGS, "lock_timeout": "50ms"})
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    yield store
    await store.close()


async def test_every_verb_waits_for_a_locked_table_and_then_gives_way(
    impatient: PostgresStore, connection: asyncpg.Connection
) -> None:
    [leased] = await running(impatient, 1)
    contended: set[str] = set()
    async with connection.transaction():
        await connection.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        for name, verb in VERBS.items():
            statements = impatient.statements
            try:
                answer = await verb(impatient, leased)
            except Unavailable:
                contended.add(name)
            else:
                answers = answer if isinstance(answer, list) else [answer]
                assert all(isinstance(each, AGAIN) for each in answers), f"{name} answered {answer}"
            assert impatient.statements - statements < 20, f"{name} does not give way"
    assert len(contended) >= len(VERBS) - 2
    for name, verb in VERBS.items():  # all of them on connections that met the lock
        assert await verb(impatient, leased) is not Unavailable, name


async def test_every_verb_leaves_a_read_only_server_and_comes_back(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    """Only new sessions heed the setting: whoever kept a read-only one could never write again."""
    [leased] = await running(store, 1)
    database = await connection.fetchval("SELECT current_database()")
    terminate = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()"
    )
    await connection.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
    await connection.fetch(terminate, database)
    refused: set[str] = set()
    for _ in range(2):  # the first time some find out that their connection is gone
        refused.clear()
        for name, verb in VERBS.items():
            try:
                await verb(store, leased)
            except Unavailable:
                refused.add(name)
    assert {"write", "start", "claim", "renew", "fire", "signal", "cancel", "resume diverged"} <= refused
    await connection.execute(f'ALTER DATABASE "{database}" RESET default_transaction_read_only')
    for name, verb in VERBS.items():
        for last in (False, True):  # a connection that has only read is still read-only, and finds out
            try:
                await verb(store, leased)
                break
            except Unavailable:
                assert not last, name


async def fail_steps(connection: asyncpg.Connection, condition: str, sqlstate: str) -> None:
    """Rows of steps fail if the condition holds."""
    await connection.execute(
        f"""
        CREATE OR REPLACE FUNCTION fail_step() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF {condition} THEN RAISE EXCEPTION 'inside words' USING ERRCODE = '{sqlstate}'; END IF;
            RETURN NEW;
        END $$;
        CREATE OR REPLACE TRIGGER fail_step BEFORE INSERT OR UPDATE ON steps FOR EACH ROW EXECUTE FUNCTION fail_step();
        """
    )


@pytest.mark.parametrize("sqlstate", ["XX000", "58030", "23514"])
async def test_a_row_that_fails_costs_its_own_run_only(
    store: PostgresStore, connection: asyncpg.Connection, sqlstate: str
) -> None:
    first, bad, last = await running(store, 3)
    await fail_steps(connection, "NEW.step_id = 'bad'", sqlstate)
    outcomes = await write(
        store,
        begin(first, "a"),
        begin(bad, "fine"),
        begin(bad, "bad"),
        complete(bad, "bad"),
        begin(bad, "after"),
        begin(last, "a"),
        complete(last, "a"),
        start(),
    )
    assert [type(outcome) for outcome in outcomes] == [Begun, Begun, Failed, Failed, Failed, Begun, Recorded, Started]
    assert sqlstate in _reason(outcomes[2])
    await fail_steps(connection, "false", sqlstate)
    again = await write(store, begin(bad, "bad"), complete(bad, "bad"), begin(bad, "after"))
    assert again == [Begun(2, NOW, 1), Recorded(3, NOW), Begun(4, NOW, 1)]


async def test_a_server_that_fails_on_everything_is_an_outage_of_few_statements(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    leased = await running(store, 50)
    await fail_steps(connection, "true", "XX000")
    statements = store.statements
    with pytest.raises(StoreBroken):
        await write(store, *(begin(each, "a") for each in leased))
    assert store.statements - statements < 60
    sessions = await connection.fetch(_SESSIONS)
    # Alone it cannot be told from a bad row: it waits aside, and the connection is not used again.
    assert [type(outcome) for outcome in await write(store, begin(leased[0], "a"))] == [Failed]
    await fail_steps(connection, "false", "XX000")
    assert await write(store, *(begin(each, "a") for each in leased)) == [Begun(1, NOW, 1)] * 50
    assert await connection.fetch(_SESSIONS) != sessions


async def test_a_statement_that_is_refused_is_nobodys_outage(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    [leased] = await running(store, 1)
    await store.get_run("default", run_id=leased.run.run_id)
    sessions = await connection.fetch(_SESSIONS)
    await connection.execute("ALTER TABLE signals RENAME TO hidden")
    with pytest.raises(StatementFailed, match="42P01"):
        await VERBS["signal"](store, leased)
    await connection.execute("ALTER TABLE hidden RENAME TO signals")
    await VERBS["signal"](store, leased)
    assert await connection.fetch(_SESSIONS) == sessions


_SESSIONS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY pid"
)


def _reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.reason
