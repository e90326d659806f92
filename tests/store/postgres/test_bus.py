"""Servers wake each other, also after their connections were cut."""

import asyncio
import json
from collections.abc import AsyncIterator

import asyncpg
import pytest

from kagzi.store.postgres import PostgresBus
from kagzi.store.postgres.connection.bus import PAYLOAD_BYTES, _payloads
from kagzi.store.protocol import POLL_AGAIN, EndedRun, RemoteNotice, TypeKey, Wake
from tests.support.timeouts import LOADED_MACHINE_S

TIMEOUT_S = LOADED_MACHINE_S


class Listener:
    def __init__(self) -> None:
        self._received: asyncio.Queue[Wake] = asyncio.Queue()

    def __call__(self, wake: Wake) -> None:
        self._received.put_nowait(wake)

    async def next(self) -> Wake:
        async with asyncio.timeout(TIMEOUT_S):
            return await self._received.get()


@pytest.fixture
async def buses(url: str) -> AsyncIterator[tuple[PostgresBus, Listener, PostgresBus, Listener]]:
    one, two = PostgresBus(url, server_id="one"), PostgresBus(url, server_id="two")
    listener_one, listener_two = Listener(), Listener()
    await one.open(listener_one)
    await two.open(listener_two)
    yield one, listener_one, two, listener_two
    await one.close()
    await two.close()


async def test_the_others_receive_it_and_the_sender_does_not(
    buses: tuple[PostgresBus, Listener, PostgresBus, Listener],
) -> None:
    one, listener_one, two, listener_two = buses
    from_one = Wake(frozenset({TypeKey("default", "ship: it"), TypeKey("other", "ship")}), frozenset({"default"}))
    from_two = Wake(ended=frozenset({"two"}), notices=frozenset({RemoteNotice("worker", "default", "run", "result")}))
    await one.publish(from_one)
    await two.publish(from_two)
    assert await listener_two.next() == from_one
    assert await listener_one.next() == from_two  # and not its own, which came before


async def test_a_broken_listener_comes_back_and_polls_again(
    buses: tuple[PostgresBus, Listener, PostgresBus, Listener], connection: asyncpg.Connection
) -> None:
    one, _, _, listener_two = buses
    terminate = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.execute(terminate)
    assert await listener_two.next() == POLL_AGAIN
    wake = Wake(frozenset({TypeKey("default", "ship")}))
    await one.publish(wake)
    assert await listener_two.next() == wake


def test_a_long_list_of_names_is_sent_in_several_messages() -> None:
    names = frozenset(TypeKey(f"namespace-{n}", "t" * 200) for n in range(200))
    ended = frozenset(f"namespace-{n}" for n in range(500))
    notices = frozenset(RemoteNotice(f"worker-{n}", "default", f"run-{n}", "cancel") for n in range(500))
    messages = list(_payloads("server", Wake(names, ended, notices=notices)))
    assert len(messages) > 1
    assert max(len(message.encode()) for message in messages) <= PAYLOAD_BYTES
    assert sum(message.count('"tttt') for message in messages) == len(names)
    assert sum(message.count('"cancel"') for message in messages) == len(notices)


async def test_runs_that_ended_are_named_and_older_servers_get_their_namespaces(
    buses: tuple[PostgresBus, Listener, PostgresBus, Listener],
) -> None:
    one, _, _, listener_two = buses
    runs = frozenset(EndedRun("default", f"01890000-0000-7000-8000-{n:012}") for n in range(1_000))
    wake = Wake(ended=frozenset({"crowded"}), ended_runs=runs)
    messages = [json.loads(message) for message in _payloads("server", wake)]
    assert len(messages) > 1
    assert {namespace for message in messages for namespace in message[2]} == {"crowded", "default"}
    await one.publish(wake)
    received = [await listener_two.next() for _ in messages]
    assert frozenset().union(*(each.ended_runs for each in received)) == runs
    assert frozenset().union(*(each.ended for each in received)) == {"crowded"}


def test_names_that_fit_into_no_message_make_all_servers_poll() -> None:
    [message] = _payloads("server", Wake(frozenset({TypeKey("n" * 9_000, "t")})))
    assert json.loads(message) == ["server", [], [], True, [], {}]
