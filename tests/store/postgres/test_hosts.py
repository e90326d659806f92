"""Several hosts in one URL: each is tried for a short time, those that failed last come last, and errors name them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
import pytest

from kagzi.core.errors import Unavailable
from kagzi.store.postgres import PostgresBus, PostgresStore
from kagzi.store.postgres.connection import hosts as hosts_module
from kagzi.store.postgres.connection.connection import HOT_SETTINGS, Counters, Link
from kagzi.store.postgres.connection.hosts import Hosts
from kagzi.store.postgres.connection.target import Target
from kagzi.store.protocol import Wake
from kagzi.system import SystemRng
from tests.support.polling import until
from tests.support.timeouts import LOADED_MACHINE_S

from .verbs import running

EACH_S = 0.5


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_module, "_EACH_S", EACH_S)


class Silent:
    """Takes every connection, and never says a word: a machine that is frozen."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.connections = 0
        self._open: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._take, self.directory / ".s.PGSQL.5432")

    async def _take(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.append(writer)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.close()


@pytest.fixture
async def silent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Silent]:
    host = Silent(tmp_path_factory.mktemp("h"))
    await host.start()
    yield host
    await host.stop()


@pytest.fixture
def unanswered() -> Iterator[str]:
    """An address to which no connection comes about: the queue of its listener is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        name = "{}:{}".format(*listener.getsockname())
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield name
        for each in waiting:
            each.close()


def with_hosts(url: str, *others: str) -> str:
    """The URL with these hosts before its own."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    ports = [other.rpartition(":")[2] if ":" in other else "5432" for other in others]
    options["host"] = ",".join([*(other.partition(":")[0] for other in others), options["host"]])
    options["port"] = ",".join([*ports, options.get("port", "5432")])
    return urlunsplit(parts._replace(query=urlencode(options, safe="/,")))


def order(hosts: Hosts) -> list[str]:
    return [host.name for host in hosts.order]


# --- reading URLs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "names", "urls"),
    [
        ("postgresql://db1/k", ["db1"], ["postgresql://db1/k"]),
        ("postgresql:///k", ["localhost"], ["postgresql:///k"]),
        ("postgresql:///k?host=/tmp&port=1", ["/tmp"], ["postgresql:///k?host=/tmp&port=1"]),
        (
            "postgresql://u:p%40@db1:1,[::1]:2/k?target_session_attrs=primary",
            ["db1:1", "[::1]:2"],
            [
                "postgresql://u:p%40@db1:1/k?target_session_attrs=primary",
                "postgresql://u:p%40@[::1]:2/k?target_session_attrs=primary",
            ],
        ),
        (
            "postgresql://u@/k?host=a,b&port=1,2&sslmode=require",
            ["a:1", "b:2"],
            [
                "postgresql://u@/k?target_session_attrs=read-write&sslmode=require&host=a&port=1",
                "postgresql://u@/k?target_session_attrs=read-write&sslmode=require&host=b&port=2",
            ],
        ),
        (
            "postgresql:///k?host=a,b",
            ["a", "b"],
            [
                "postgresql:/k?target_session_attrs=read-write&host=a",
                "postgresql:/k?target_session_attrs=read-write&host=b",
            ],
        ),
    ],
)
def test_each_host_has_a_url_of_its_own(url: str, names: list[str], urls: list[str]) -> None:
    hosts = Hosts(url)
    assert order(hosts) == names
    assert [host.url for host in hosts.order] == urls


def test_a_host_that_failed_comes_last() -> None:
    hosts = Hosts("postgresql://a,b,c/k")
    a, b, c = hosts.order
    failed: list[str] = []
    hosts.on_failure = lambda host: failed.append(host.name)
    hosts.note_failure(a, TimeoutError())
    assert order(hosts) == ["b", "c", "a"]
    hosts.note_failure(a, TimeoutError())  # another connection to it
    hosts.note_failure(b, asyncpg.QueryCanceledError("too slow"))  # it works
    hosts.note_failure(c, asyncpg.ReadOnlySQLTransactionError("demoted"))
    assert order(hosts) == ["b", "a", "c"]
    assert failed == ["a", "a", "c"]


# --- connecting -------------------------------------------------------------------------------------------------------


async def test_a_host_that_never_answers_costs_a_moment_once(url: str, silent: Silent) -> None:
    store = PostgresStore(with_hosts(url, str(silent.directory)), rng=SystemRng())
    async with asyncio.timeout(LOADED_MACHINE_S):
        await store.open()
        before = silent.connections
        assert before
        await running(store, 3)
        assert silent.connections == before
    await store.close()


async def test_an_address_that_does_not_answer_is_passed_over(url: str, unanswered: str) -> None:
    target = Target(with_hosts(url, unanswered))
    async with asyncio.timeout(LOADED_MACHINE_S):
        connection = await target.connect({})
    assert order(target.hosts)[-1] == unanswered
    await connection.close()


async def test_servers_listen_at_the_host_that_answers(url: str, silent: Silent) -> None:
    wakes: list[Wake] = []
    one = PostgresBus(with_hosts(url, str(silent.directory)), server_id="one")
    two = PostgresBus(url, server_id="two")
    async with asyncio.timeout(LOADED_MACHINE_S):
        await one.open(wakes.append)
        await two.publish(Wake(ended=frozenset({"shop"})))
        await until(lambda: wakes)
    await one.close()
    await two.close()


async def test_a_listener_leaves_a_host_on_which_a_command_failed(url: str) -> None:
    """It would hear nothing there: the others write to another host by now."""
    same = dict(parse_qsl(urlsplit(url).query))["host"]
    bus = PostgresBus(with_hosts(url, same), server_id="one")
    wakes: list[Wake] = []
    await bus.open(wakes.append)
    first, second = bus._target.hosts.order
    bus._target.hosts.note_failure(second, TimeoutError())
    assert not wakes
    bus._target.hosts.note_failure(first, TimeoutError())
    async with asyncio.timeout(LOADED_MACHINE_S):
        await until(lambda: wakes and wakes[0].poll_again)
    await bus.close()


# --- words ------------------------------------------------------------------------------------------------------------


async def test_the_error_names_each_host_and_what_it_said(silent: Silent, unanswered: str, tmp_path: Path) -> None:
    url = with_hosts(f"postgresql://u@/k?host={tmp_path}", str(silent.directory), unanswered)
    with pytest.raises(Unavailable) as failure:
        await Target(url).connect({})
    text = str(failure.value)
    assert f"{silent.directory}:5432: no response in time; {unanswered}: no response in time; {tmp_path}:5432: " in text
    assert "No such file" in text


async def test_the_error_names_the_host_whose_connection_was_lost(url: str, connection: asyncpg.Connection) -> None:
    same = dict(parse_qsl(urlsplit(url).query))["host"]
    target = Target(with_hosts(url, "/nowhere"))
    link = Link(target, Counters(), HOT_SETTINGS)

    async def break_it() -> None:
        async with link.use() as session:
            await session.read("server_settings")
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await session.read("server_settings")

    with pytest.raises(Unavailable, match=f"^PostgreSQL at {same}:5432/"):
        await break_it()
    assert order(target.hosts) == ["/nowhere:5432", f"{same}:5432"]
    await link.close()
