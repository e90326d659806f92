"""Embedded addresses: a server in the user's own process for `sqlite:///file.db` and `:memory:`.

The first process that opens a file serves it to itself and to every other process that opens the same file. It holds an
OS lock beside the file and writes its address and a secret there. When it ends, the others compete for the lock: the
winner serves, and the rest connect to it. `:memory:` is one store per process, until its last user closes it.
"""

import asyncio
import atexit
import logging
import os
import shutil
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from urllib.parse import quote

from .core.errors import InvalidArgument, PreconditionFailed, Unavailable
from .event_loop import new_fast_loop
from .server.app import Server
from .server.config import ServerConfig
from .server.database import MEMORY, SqliteDatabase, parse_database
from .server.file_lock import Endpoint, FileLock, refuse_bad_place
from .server.grpc.interceptor import PROOF_HEADER
from .server.listen import ListenAddress
from .system import SystemIds
from .wire.calls.call import OpenCall

LOGGER = logging.getLogger(__name__)

RESOLVE_TIMEOUT_S = 10.0
_POLL_S = 0.02
_STOP_GRACE_S = 5.0
_STOP_TIMEOUT_S = 10.0
_SOCKET_PREFIX = "kagzi-"


class EmbeddedServer:
    """One user of an embedded address. The server stops when its last user in its own process closes it."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._host: _Host | None = None
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self.target = ""
        self.metadata: tuple[tuple[str, str], ...] = ()

    @property
    def is_owner(self) -> bool:
        """Whether this process serves the address."""
        return self._host is not None

    @property
    def open_call(self) -> OpenCall | None:
        """Opens calls on the server if it runs in this process. Otherwise None: connect to `target`."""
        return None if self._host is None else self._host.open_call

    def note_worker(self, namespace: str, worker_id: str) -> None:
        if self._host is not None and self._host.alive:
            self._host.note_worker(namespace, worker_id)

    async def renew(self) -> None:
        """Find the current server, or serve if nobody does. Raises Unavailable, PreconditionFailed, CannotStart."""
        _refuse_in_child(self._key)
        if self._closed:
            raise PreconditionFailed(f"this connection to {self._key} is closed. Open a new one.")
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT_S):
                await self._resolve()
        except TimeoutError as error:
            raise Unavailable(
                f"{self._key} is locked by a process that has not published its address for {RESOLVE_TIMEOUT_S:.0f} s. "
                f"Wait for it, or stop it: its process id is in {self._key}.lock."
            ) from error

    async def close(self) -> None:
        self._closed = True
        host, self._host = self._host, None
        if host is not None:
            await host.leave(self._loop)

    async def _resolve(self) -> None:
        if self._host is not None and self._host.alive:
            return
        self._host = None
        while True:
            server = _find(self._key)
            if isinstance(server, _Host):
                self._host = server
                await asyncio.shield(asyncio.wrap_future(server.ready))  # shielded: other users wait for it, too
            if isinstance(server, Endpoint) and server.target.startswith("https://"):
                raise PreconditionFailed(
                    f"{self._key} is served with TLS, by process {server.pid}. Connect to {server.target} instead."
                )
            if server is not None:
                self.target, self.metadata = server.target, _proof(server.secret)
                return
            await asyncio.sleep(_POLL_S)  # the process that holds the lock has not published its address yet


async def open_embedded(address: str) -> EmbeddedServer:
    """Raises InvalidArgument, CannotStart, SchemaMismatch, PreconditionFailed (in a forked child), Unavailable."""
    database = parse_database(address)
    if not isinstance(database, SqliteDatabase):
        raise InvalidArgument(
            "this is the address of a database. Run `kagzi server --db URL` and connect to that server.",
            field="address",
        )
    if database.path is not None:
        refuse_bad_place(database.path)
    embedded = EmbeddedServer(MEMORY if database.path is None else str(database.path.resolve()))
    try:
        await embedded.renew()
    except BaseException:
        await embedded.close()
        raise
    return embedded


class _Host:
    """The server of one address, shared by all its users in this process. It has its own event loop and thread, so that
    a user that blocks its loop does not block the others."""

    def __init__(self, key: str, lock: FileLock | None) -> None:
        self.users: list[asyncio.AbstractEventLoop] = []
        self.ready: Future[None] = Future()
        self.ended: Future[None] = Future()
        self.is_ending = False
        self.secret = SystemIds().token()
        self._key = key
        self._lock = lock
        self._directory = Path(tempfile.mkdtemp(prefix=_SOCKET_PREFIX))
        self.target = f"unix:{self._directory}/socket"
        config = ServerConfig(
            db=MEMORY if key == MEMORY else f"sqlite:///{quote(key)}",
            listen=ListenAddress(unix_path=self.target.removeprefix("unix:")),
            http=None,
            secret=self.secret,
        )
        self._server = Server(config, lock=lock)
        self.open_call = self._server.open_call
        self._loop = new_fast_loop()
        self._serving = self._loop.create_task(self._serve(), name="kagzi embedded server")
        # A daemon thread: a program can exit without closing it, and the file is then as safe as after a kill.
        threading.Thread(target=self._run, name="kagzi-embedded", daemon=True).start()

    @property
    def alive(self) -> bool:
        return not self.is_ending

    def note_worker(self, namespace: str, worker_id: str) -> None:
        if self._lock is not None:
            self._lock.note_worker((namespace, worker_id))

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(asyncio.wait({self._serving}))
        self._release()
        self.ended.set_result(None)

    async def _serve(self) -> None:
        try:
            await self._server.start()
            self.ready.set_result(None)
            failure = await self._server.wait_failed()
            LOGGER.error("the embedded server of %s failed and is replaced", self._key, exc_info=failure)
        except Exception as error:
            if self.ready.done():
                LOGGER.exception("the embedded server of %s failed and is replaced", self._key)
            else:
                self.ready.set_exception(error)
        finally:
            self.is_ending = True
            if not self.ready.done():
                self.ready.set_exception(Unavailable(f"the process stopped serving {self._key}. Try again."))
            await self._server.stop(_STOP_GRACE_S)

    async def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Remove a user; the last one ends the server."""
        with _guard:
            self.users.remove(loop)
            if self.users:
                return
            self.end()
        await asyncio.wait({asyncio.wrap_future(self.ended)}, timeout=_STOP_TIMEOUT_S)

    def end(self) -> None:
        """Accept no new users. The next user starts a new server once this one has stopped."""
        if not self.is_ending:
            self.is_ending = True
            self._loop.call_soon_threadsafe(self._serving.cancel)

    def _release(self) -> None:
        """Release the lock and the socket."""
        with _guard:
            if self._lock is not None:
                self._lock.release()
            self.remove_socket()
            if _hosts.get(self._key) is self:
                del _hosts[self._key]

    def remove_socket(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


_hosts: dict[str, _Host] = {}
_guard = threading.RLock()  # users of one address may run on several event loops
_opened_in: dict[str, int] = {}  # the process that first opened an address


@atexit.register
def _remove_sockets() -> None:
    for key, host in tuple(_hosts.items()):
        if _opened_in.get(key) == os.getpid():
            host.remove_socket()


def _find(key: str) -> _Host | Endpoint | None:
    """Returns the host in this process, created if nobody serves, with the caller added as a user; or the endpoint of
    another process; or None while another process is about to serve or the host of this one is stopping."""
    with _guard:
        host = _hosts.get(key)
        if host is not None and all(loop.is_closed() for loop in host.users):  # they never closed it
            host.end()
        if host is not None and not host.alive:
            return None
        if host is None:
            lock = None if key == MEMORY else FileLock(Path(key))
            if lock is not None:
                published = lock.published()
                if not lock.acquire():
                    return published
                _remove_stale_socket(published)
            host = _hosts[key] = _Host(key, lock)
        host.users.append(asyncio.get_running_loop())
        return host


def _remove_stale_socket(published: Endpoint | None) -> None:
    """Remove the socket of the previous owner, which was killed."""
    if published is not None and published.target.startswith("unix:"):
        directory = Path(published.target.removeprefix("unix:")).parent
        if directory.name.startswith(_SOCKET_PREFIX) and directory.parent == Path(tempfile.gettempdir()):
            shutil.rmtree(directory, ignore_errors=True)


def _proof(secret: str) -> tuple[tuple[str, str], ...]:
    return ((PROOF_HEADER, secret),) if secret else ()


def _refuse_in_child(key: str) -> None:
    """Raises PreconditionFailed: a forked process shares its parent's connections, and if both use them, both break."""
    if _opened_in.setdefault(key, os.getpid()) != os.getpid():
        raise PreconditionFailed(
            f"{key} was opened before this process was forked, and cannot be used on both sides. "
            'Open it in the child only, or start children with multiprocessing.get_context("spawn").'
        )
