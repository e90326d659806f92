"""Embedded addresses: whoever opens a file first serves it; when it goes, another takes over."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import uvloop

from kagzi import embedded as embedded_module
from kagzi.core.errors import InvalidArgument, PreconditionFailed, Unavailable
from kagzi.embedded import EmbeddedServer, open_embedded
from kagzi.server import file_lock
from kagzi.server.app import Server
from kagzi.server.calls import CallServer
from kagzi.server.config import ServerConfig
from kagzi.server.file_lock import FileLock
from kagzi.server.listen import ListenAddress
from kagzi.server.startup import CannotStart
from kagzi.v1 import workflow_pb2
from tests.server.stubs import TIMEOUT_S, Stubs
from tests.support.timeouts import LOADED_MACHINE_S

# Opens the file, says so, and serves until its input ends.
OPENER = """
import asyncio, sys
from kagzi.embedded import open_embedded

async def main():
    embedded = await open_embedded(sys.argv[1])
    print("owner" if embedded.is_owner else "guest", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await embedded.close()

asyncio.run(main())
"""


# Opens the file, says so, and blocks its event loop until its input ends.
BLOCKED = OPENER.replace("await asyncio.to_thread(sys.stdin.read)", "sys.stdin.read()")


# Takes the lock and forks; the child says so, and lives until its input ends.
FORKING = """
import os, sys
from pathlib import Path
from kagzi.server.file_lock import FileLock

lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
if os.fork() == 0:
    print("forked", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def opener(address: str, program: str = OPENER) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, address, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(TIMEOUT_S):
            role = (await process.stdout.readline()).decode().strip()
        yield process, role
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[EmbeddedServer]:
    embedded = await open_embedded(address)
    try:
        yield embedded
    finally:
        await embedded.close()


@asynccontextmanager
async def connected(embedded: EmbeddedServer) -> AsyncIterator["Connected"]:
    async with grpc.aio.insecure_channel(embedded.target) as channel:
        yield Connected(channel, embedded)


class Connected:
    def __init__(self, channel: grpc.aio.Channel, embedded: EmbeddedServer) -> None:
        self._workflows: Any = Stubs(channel).workflows
        self._metadata = embedded.metadata

    async def start(self, **fields: Any) -> str:
        request = workflow_pb2.StartWorkflowRequest(workflow_type="greet", **fields)
        return (await self._workflows.StartWorkflow(request, metadata=self._metadata, timeout=TIMEOUT_S)).run_id

    async def get(self, run_id: str) -> str:
        request = workflow_pb2.GetWorkflowRequest(run_id=run_id)
        response = await self._workflows.GetWorkflow(request, metadata=self._metadata, timeout=TIMEOUT_S)
        return response.workflow.run_id


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/k.db"


async def test_a_file_is_served_in_this_process_and_kept(address: str) -> None:
    async with opened(address) as first, connected(first) as client:
        assert first.is_owner
        run_id = await client.start()
    async with opened(address) as again, connected(again) as client:
        assert await client.get(run_id) == run_id


async def test_users_of_one_process_share_one_server(address: str) -> None:
    async with opened(address) as first:
        async with opened(address) as second, connected(second) as client:
            assert (second.target, second.metadata) == (first.target, first.metadata)
            await client.start()
        async with connected(first) as client:  # the second one's leaving took nothing away
            await client.start()


async def test_racing_users_share_one_server_too(address: str) -> None:
    users = await asyncio.gather(*(open_embedded(address) for _ in range(5)))
    assert len({user.target for user in users}) == 1
    await asyncio.gather(*(user.close() for user in users))
    assert FileLock(Path(address.removeprefix("sqlite:///"))).acquire()


async def test_another_process_is_a_guest_with_the_secret(address: str, tmp_path: Path) -> None:
    async with opener(address) as (_, role):
        assert role == "owner"
        async with opened(address) as guest, connected(guest) as client:
            assert not guest.is_owner
            run_id = await client.start()
            assert await client.get(run_id) == run_id
        published = FileLock(tmp_path / "k.db").published()
        assert published is not None
        assert published.secret
    async with opened(address) as owner, connected(owner) as client:
        assert await client.get(run_id) == run_id


async def test_an_owner_whose_loop_is_blocked_serves_its_guests(address: str) -> None:
    async with opener(address, BLOCKED) as (process, role):
        assert role == "owner"
        async with opened(address) as guest, connected(guest) as client:
            assert not guest.is_owner
            assert await client.get(run_id := await client.start()) == run_id
        assert process.returncode is None


async def test_without_the_secret_nobody_is_served(address: str) -> None:
    async with opened(address) as owner, grpc.aio.insecure_channel(owner.target) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await Stubs(channel).start()
        assert refusal.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
async def test_when_the_owner_stops_a_guest_takes_over_within_a_second(
    address: str, number: signal.Signals | None
) -> None:
    async with opener(address) as (process, role):
        assert role == "owner"
        async with opened(address) as guest:
            async with connected(guest) as client:
                run_id = await client.start()
            if number is None:
                assert process.stdin is not None
                process.stdin.close()
            else:
                process.send_signal(number)
            await process.wait()
            async with asyncio.timeout(LOADED_MACHINE_S):
                await guest.renew()
            assert guest.is_owner
            async with connected(guest) as client:
                assert await client.get(run_id) == run_id


async def test_of_several_guests_one_wins_and_the_others_find_it(address: str) -> None:
    async with opener(address) as (owner, _), opener(address) as (second, role):
        assert role == "guest"
        async with opened(address) as guest:
            owner.kill()
            await owner.wait()
            await guest.renew()
            assert guest.is_owner
            async with opener(address) as (_, third):
                assert third == "guest"
            assert second.returncode is None


async def test_what_a_killed_owner_left_in_the_temporary_directory_is_removed(address: str, tmp_path: Path) -> None:
    async with opener(address) as (owner, _):
        published = FileLock(tmp_path / "k.db").published()
        assert published is not None
        directory = Path(published.target.removeprefix("unix:")).parent
        assert exists(directory)
        owner.kill()
        await owner.wait()
        assert exists(directory)
        async with opened(address):
            assert not exists(directory)


async def test_nothing_is_left_after_a_clean_end(address: str, tmp_path: Path) -> None:
    async with opened(address) as owner:
        directory = Path(owner.target.removeprefix("unix:")).parent
    assert not exists(directory)
    assert not exists(tmp_path / "k.db.server")


def exists(path: Path) -> bool:
    return path.exists()


async def test_a_server_on_the_file_serves_embedded_users_too(address: str) -> None:
    server = Server(ServerConfig(db=address, listen=ListenAddress("127.0.0.1", 0), http=None))
    await server.start()
    try:
        async with opened(address) as guest, connected(guest) as client:
            assert guest.target == server.grpc_address
            assert await client.start()
        with pytest.raises(CannotStart, match=f"in use by process {os.getpid()}"):
            await Server(ServerConfig(db=address, listen=ListenAddress("127.0.0.1", 0), http=None)).start()
    finally:
        await server.stop()


async def test_memory_is_one_store_per_process_and_gone_with_its_last_user() -> None:
    async with opened(":memory:") as first, connected(first) as client:
        run_id = await client.start()
        async with opened(":memory:") as second, connected(second) as other:
            assert await other.get(run_id) == run_id
    async with opened(":memory:") as later, connected(later) as client:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await client.get(run_id)
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_users_on_another_loop_share_the_store() -> None:
    async with opened(":memory:") as first, connected(first) as client:
        run_id = await client.start()
        run_ids: list[str] = []

        async def elsewhere() -> None:
            async with opened(":memory:") as second, connected(second) as other:
                run_ids.append(await other.get(run_id))

        thread = threading.Thread(target=asyncio.run, args=(elsewhere(),))
        thread.start()
        await asyncio.to_thread(thread.join, TIMEOUT_S)
        assert run_ids == [run_id]
        await client.start()


@pytest.mark.parametrize("installed", [True, False], ids=["uvloop", "without-uvloop"])
async def test_the_server_has_the_fastest_loop_that_is_installed(
    address: str, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    if not installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)  # as if it could not be imported
    opened_calls: list[asyncio.AbstractEventLoop] = []
    begin = CallServer.begin

    def observed(server: CallServer, *call: Any) -> None:
        opened_calls.append(asyncio.get_running_loop())
        begin(server, *call)

    monkeypatch.setattr(CallServer, "begin", observed)
    async with opened(address) as embedded, connected(embedded) as client:
        assert embedded.open_call is not None
        assert await embedded.open_call("/unknown", embedded.metadata, None).read() is None
        assert await client.start()  # over the socket, as other processes do
    assert [isinstance(loop, uvloop.Loop) for loop in opened_calls] == [installed]


def test_a_loop_that_ended_without_closing_leaves_the_file_free(address: str) -> None:
    async def forget_to_close() -> str:
        embedded = await open_embedded(address)
        async with connected(embedded) as client:
            return await client.start()

    run_id = asyncio.run(forget_to_close())

    async def come_back() -> str:
        async with opened(address) as embedded, connected(embedded) as client:
            return await client.get(run_id)

    assert asyncio.run(come_back()) == run_id


async def test_a_lock_without_a_word_is_not_waited_for_in_vain(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_module, "RESOLVE_TIMEOUT_S", 0.2)
    lock = FileLock(tmp_path / "k.db")
    assert lock.acquire()
    with pytest.raises(Unavailable, match=r"k\.db\.lock"):
        await open_embedded(address)
    lock.release()


async def test_a_closed_one_stays_closed(address: str) -> None:
    embedded = await open_embedded(address)
    await embedded.close()
    await embedded.close()
    with pytest.raises(PreconditionFailed, match="closed"):
        await embedded.renew()


async def test_a_forked_child_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(address) as owner:
        monkeypatch.setattr(embedded_module.os, "getpid", lambda: -1)  # as a child would see it
        with pytest.raises(PreconditionFailed, match="forked"):
            await open_embedded(address)
        with pytest.raises(PreconditionFailed, match="forked"):
            await owner.renew()
        monkeypatch.undo()


def test_a_child_does_not_keep_the_lock_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path / "k.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"forked\n"
        process.kill()
        process.wait(TIMEOUT_S)
        other = FileLock(tmp_path / "k.db")
        assert other.acquire()  # while the child still lives: it waits for the end of its input
        other.release()


async def test_a_network_file_system_is_refused(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"none / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(file_lock, "_MOUNTS", mounts)
    with pytest.raises(CannotStart, match="network file system \\(nfs4\\)"):
        await open_embedded(address)


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="mkdir -p"):
        await open_embedded(f"sqlite:///{tmp_path}/no/k.db")


async def test_a_database_server_is_not_embedded() -> None:
    with pytest.raises(InvalidArgument, match="kagzi server"):
        await open_embedded("postgresql://u:hunter2@h/d")


# Takes the lock with a worker in its process, says so, and lives until its input ends.
WITH_A_WORKER = """
import sys
from pathlib import Path
from kagzi.server.file_lock import FileLock

lock = FileLock(Path(sys.argv[1]))
assert lock.acquire()
lock.note_worker(("default", "w-1"))
lock.note_worker(("other", "w-2"))
lock.note_worker(("default", "w-1"))
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_workers_are_known_to_have_died_only_if_their_process_did(tmp_path: Path, killed: bool) -> None:
    database = tmp_path / "kagzi.db"
    with subprocess.Popen(
        [sys.executable, "-c", WITH_A_WORKER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        mine = FileLock(database)
        assert not mine.acquire()
        assert mine.holder_pid() == process.pid
        if killed:
            process.kill()
        process.communicate()
    assert mine.acquire()
    assert mine.died == ((("default", "w-1"), ("other", "w-2")) if killed else ())
    mine.release()


def test_a_note_that_was_being_written_is_none(tmp_path: Path) -> None:
    database = tmp_path / "kagzi.db"
    (tmp_path / "kagzi.db.lock").write_text('7\n["default","w-1"]\nnonsense\n["default","w-')
    lock = FileLock(database)
    assert lock.acquire()
    assert lock.died == (("default", "w-1"),)
    lock.release()
    assert lock.acquire()
    assert lock.died == ()  # a process that lets go has not died
    lock.release()
