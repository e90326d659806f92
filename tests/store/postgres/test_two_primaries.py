"""A standby was promoted, and the old primary lives on: a server that is still connected to it acknowledges nothing,
and tells nobody that there is no such run. Real servers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import pytest

from kagzi.core.errors import Unavailable
from kagzi.core.pages.timeline import TimelineQuery
from kagzi.core.records import RunKey
from kagzi.store.postgres import PostgresMigrator, PostgresStore
from kagzi.store.postgres.connection import barrier, target
from kagzi.system import SystemRng
from tests.support.postgres import Databases
from tests.support.standby import Pair

from .verbs import NOW, running

pytestmark = pytest.mark.xdist_group("standby")  # at most one pair of servers at a time

Find = Callable[[PostgresStore, RunKey], Awaitable[Any]]

FINDS: dict[str, Find] = {
    "get": lambda store, run: store.get_run("default", run_id=run.run_id),
    "get by workflow id": lambda store, run: store.get_run("default", workflow_id="unknown"),
    "wait": lambda store, run: store.endings_of([run]),
    "events": lambda store, run: store.events_of(run, 0, 10),
    "steps": lambda store, run: store.list_steps(run, name=None, after_begun_seq=0, limit=10, payloads=False),
    "forgotten steps": lambda store, run: store.list_forgotten_steps(
        run, name=None, after=None, limit=10, payloads=False
    ),
    "step": lambda store, run: store.get_step(run, "charge"),
    "timeline": lambda store, run: store.timeline(run, TimelineQuery(size=10)),
    "logs": lambda store, run: store.list_step_logs(run, step_id=None, cursor=None, limit=10),
    "export": lambda store, run: store.export_run(run),
    "cancel": lambda store, run: store.cancel_run(run, "enough", NOW, NOW + 1),
}


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with Pair() as pair:
        yield pair


async def opened(url: str) -> PostgresStore:
    store = PostgresStore(url, rng=SystemRng())
    await store.open()
    return store


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(barrier, "CROSSING_TIMEOUT_S", 0.5)
    monkeypatch.setattr(barrier, "PAUSE_S", 0.01)
    monkeypatch.setattr(target, "call_timeout_s", lambda _: 1.0)


@pytest.fixture
async def unknown(pair: Pair) -> AsyncIterator[tuple[PostgresStore, RunKey, str]]:
    """A store on the old primary, and a run that was started at the new one; and the URL of the old one."""
    await pair.attach()
    url = Databases(pair.url).create()
    await PostgresMigrator(url).migrate()
    old = await opened(url)
    await running(old, 1)
    run = RunKey("default", "01a1f549-bdc7-7497-ab2f-b5c5b5b5b5b5")
    for find in FINDS.values():
        assert await find(old, run) in (None, [None], (None, None)) or find is FINDS["cancel"]  # it does not exist
    await pair.replayed()
    await pair.detach()
    await pair.promote_beside()
    new = await opened(pair.on_standby(url))
    [leased] = await running(new, 1)
    await new.close()
    yield old, leased.run, url
    await old.close()


async def test_who_does_not_know_a_run_does_not_say_so(
    impatient: None, pair: Pair, unknown: tuple[PostgresStore, RunKey, str]
) -> None:
    old, run, url = unknown
    for name, find in FINDS.items():
        try:
            answer = await find(old, run)
        except Unavailable:
            continue
        pytest.fail(f"{name}: {answer}")

    # A URL with both: the first is passed over, since no standby confirms anything there.
    store = await opened(_with_both(url, pair.on_standby(url)))
    record = await store.get_run("default", run_id=run.run_id)
    assert record is not None
    await store.close()


def _with_both(url: str, other: str) -> str:
    options, others = dict(parse_qsl(urlsplit(url).query)), dict(parse_qsl(urlsplit(other).query))
    both = {**options, "host": f"{options['host']},{others['host']}"}
    return urlunsplit(urlsplit(url)._replace(query=urlencode(both, safe="/,")))


async def test_without_a_standby_nothing_more_is_read(url: str) -> None:
    store = await opened(url)
    await running(store, 1)
    run = RunKey("default", "01a1f549-bdc7-7497-ab2f-b5c5b5b5b5b5")
    for name in ("get", "wait", "events", "step"):
        before = store.statements
        await FINDS[name](store, run)
        assert store.statements == before + 1, name
    await store.close()
