"""Caches the API keys in use: verified once, then checked again every few seconds.

A call with a cached key needs no database query. The next poll notices a key that was revoked, rotated or has
expired; a notification from another server on this store triggers a poll at once. Streams that were opened with the
key then end.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from hashlib import sha256

from ...core.access import ANYONE, EVERY_NAMESPACE, Caller, Scope
from ...core.errors import KagziError, PermissionDenied, Unauthenticated
from ...core.keys.keys import Credential, KeyWithSecrets, hash_secret, read_key, valid_until
from ...core.providers import Clock
from ...core.times import Timestamp
from ...engine import Keys

logger = logging.getLogger("kagzi.server")

BEARER = "bearer "
NO_KEY = (
    "this server requires an API key, and none was given. Pass api_key=, set KAGZI_API_KEY, or send "
    "`authorization: Bearer kgz_...`."
)
_FRESH_POLLS = 3  # a verified key stays valid for this many polls: one may fail or be late
_REMEMBERED = 10_000
_REFUSED_S = 1.0  # a refused key is not looked up again for this long
_VERIFIED_AT_ONCE = 8
_POLLED_AT_ONCE = 500
_SPACING_S = 0.05
_NOTED_S = 60.0  # how often the last use of keys is recorded


class _Known:
    """A credential that was valid at the last lookup. `session_hash`: set for a browser session."""

    __slots__ = ("caller", "checked_s", "credential", "open", "session_hash", "until", "used")

    def __init__(self, credential: Credential, caller: Caller, session_hash: str) -> None:
        self.credential = credential
        self.caller = caller
        self.session_hash = session_hash
        self.until: Timestamp | None = None
        self.checked_s = 0.0
        self.used = True
        self.open: dict[asyncio.Timeout, str] = {}  # with the reason why it ends, once it does


class Access:
    """`asks` False: no keys are required, and every caller may do everything."""

    def __init__(self, keys: Keys, clock: Clock, *, asks: bool, check_ms: int) -> None:
        self.asks = asks
        self._keys = keys
        self._clock = clock
        self._check_s = check_ms / 1_000
        self._known: dict[bytes, _Known] = {}
        self._by_caller: dict[int, _Known] = {}  # by id() of the caller object, which lives as long as its entry
        self._refused: dict[bytes, tuple[str, float]] = {}  # the reasons, never the errors: those keep their callers
        self._asking: dict[bytes, asyncio.Task[_Known | str]] = {}
        self._turns = asyncio.Semaphore(_VERIFIED_AT_ONCE)
        self._changed = asyncio.Event()
        self._used: set[str] = set()
        self._noted_s = 0.0
        self._failing = False
        self._stopped = False

    # --- who calls ----------------------------------------------------------------------------------------------------

    def remembered(self, authorization: str) -> Caller | None:
        """The caller, if the key was verified recently; without a lookup."""
        known = self._known.get(_digest(authorization))
        if known is None or not self._is_fresh(known):
            return None
        known.used = True
        return known.caller

    async def caller_of(self, authorization: str | None) -> Caller:
        """The caller of an `authorization` header. Raises Unauthenticated, Unavailable."""
        if not self.asks:
            return ANYONE
        if not authorization:
            raise Unauthenticated(NO_KEY)
        return self.remembered(authorization) or await self._caller(
            _digest(authorization), lambda: self._verify(read_authorization(authorization))
        )

    async def caller_of_session(self, token: str) -> Caller:
        """The caller of a browser's session cookie. Raises Unauthenticated, Unavailable."""
        if not self.asks:
            return ANYONE
        digest = _digest(f"session {token}")
        known = self._known.get(digest)
        if known is not None and self._is_fresh(known):
            known.used = True
            return known.caller
        return await self._caller(digest, lambda: self._verify_session(hash_secret(token)))

    async def log_in(self, key: str) -> tuple[str, Timestamp, Caller]:
        """The token of a new browser session, its latest expiry, and the caller. Raises Unauthenticated."""
        credential = read_key(key)
        known = await self._verify(credential)
        token, session = await self._keys.open_session(credential)
        return token, min(session.expires_at, known.until or session.expires_at), known.caller

    async def log_out(self, token: str) -> None:
        await self._keys.close_session(hash_secret(token))

    # --- what they may do ---------------------------------------------------------------------------------------------

    def require(self, caller: Caller, scope: Scope | None, namespace: str) -> None:
        """`scope` None: any valid key. `namespace` EVERY_NAMESPACE: all of them. Raises PermissionDenied."""
        if scope is None or caller.may(scope, namespace):
            return
        needed = "every namespace" if namespace == EVERY_NAMESPACE else f"namespace {namespace}"
        has = "every namespace" if caller.namespace == EVERY_NAMESPACE else f"namespace {caller.namespace}"
        scopes = ", ".join(one for one in Scope if one in caller.scopes)
        raise PermissionDenied(
            f"this needs the scope {scope.value} for {needed}; the key {caller.key_id} ({caller.name}) has {scopes} "
            f"for {has}. Use another key.",
            metadata={"scope": scope.value, "namespace": namespace, "scopes": scopes},
        )

    @asynccontextmanager
    async def while_good(self, caller: Caller) -> AsyncGenerator[None]:
        """For streams. Raises Unauthenticated inside the block when the caller's key is no longer valid. The caller
        must be one that this object returned."""
        known = self._by_caller.get(id(caller))
        if known is None:  # forgotten since its lookup, or no keys are required
            if self.asks:
                raise Unauthenticated("this API key has just been changed. Try again.")
            yield
            return
        turn = asyncio.timeout(None)
        try:
            async with turn:
                known.open[turn] = ""
                yield
        except TimeoutError:
            reason = known.open.get(turn)
            if not reason or not turn.expired():
                raise
            raise Unauthenticated(reason) from None
        finally:
            known.open.pop(turn, None)

    # --- lookups ------------------------------------------------------------------------------------------------------

    def _is_fresh(self, known: _Known) -> bool:
        now_s = asyncio.get_running_loop().time()
        return known.checked_s + _FRESH_POLLS * self._check_s > now_s and (
            known.until is None or self._clock.now() < known.until
        )

    async def _caller(self, digest: bytes, verify: Callable[[], Coroutine[object, object, _Known]]) -> Caller:
        """Concurrent calls with the same key share one lookup."""
        loop = asyncio.get_running_loop()
        reason, until_s = self._refused.get(digest, ("", 0.0))
        if reason and until_s > loop.time():
            raise Unauthenticated(reason)
        task = self._asking.get(digest)
        if task is None:
            task = self._asking[digest] = loop.create_task(self._ask(digest, verify), name="kagzi key")
            task.add_done_callback(lambda done: self._verified(digest, done))
        known = await asyncio.shield(task)
        if isinstance(known, str):
            raise Unauthenticated(known)
        return known.caller

    def _verified(self, digest: bytes, done: "asyncio.Task[_Known | str]") -> None:
        self._asking.pop(digest, None)
        if not done.cancelled():
            done.exception()  # raised by those who wait; retrieved here in case none is left

    async def _ask(self, digest: bytes, verify: Callable[[], Coroutine[object, object, _Known]]) -> _Known | str:
        """What all who wait for this lookup get: the credential, or the reason why it is refused."""
        async with self._turns:
            try:
                stored = await verify()
            except Unauthenticated as error:
                if len(self._refused) >= _REMEMBERED:
                    self._refused.clear()
                self._refused[digest] = (error.message, asyncio.get_running_loop().time() + _REFUSED_S)
                return error.message
        known = self._known.get(digest)
        if known is not None:  # open streams stay on the entry that the next poll checks
            known.until, known.checked_s, known.used = stored.until, stored.checked_s, True
            return known
        if len(self._known) >= _REMEMBERED:
            for other, old in list(self._known.items()):
                if not old.open:
                    self._forget(other, old)
        self._known[digest] = stored
        self._by_caller[id(stored.caller)] = stored
        return stored

    async def _verify(self, credential: Credential, session_hash: str = "") -> _Known:
        checked_s = asyncio.get_running_loop().time()
        stored = next(iter(await self._keys.find([credential.key_id])), None)
        until = valid_until(stored, credential.secret_hash, self._clock.now())
        assert stored is not None, "valid_until refuses what does not exist"
        known = _Known(credential, stored.key.caller, session_hash)
        known.until, known.checked_s = until, checked_s
        return known

    async def _verify_session(self, session_hash: str) -> _Known:
        session = await self._keys.session(session_hash)
        if session is None:
            raise Unauthenticated("this session is over. Log in again.")
        known = await self._verify(Credential(session.key_id, session.secret_hash), session_hash)
        known.until = min(session.expires_at, known.until or session.expires_at)
        return known

    # --- polling ------------------------------------------------------------------------------------------------------

    def poll_soon(self) -> None:
        """Called when a key may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Polls until stopped. If the store is unavailable, streams stay open and cached keys become stale."""
        while not self._stopped:
            try:
                async with asyncio.timeout(self._check_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(_SPACING_S)  # collects changes made at the same time
            self._changed.clear()
            try:
                await self._poll()
                await self._note_used()
            except (KagziError, TimeoutError) as error:
                if not self._failing and not self._stopped:
                    logger.warning("API keys in use cannot be checked and will be again soon: %s", error)
                self._failing = True
            except Exception:  # polling must continue, or revoked keys stay valid
                logger.exception("API keys in use cannot be checked and will be again soon")
            else:
                self._failing = False

    async def stop(self, running: "asyncio.Task[None]") -> None:
        """Ends `run`, even if a database driver turns the cancellation into an error of its own."""
        self._stopped = True
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def _poll(self) -> None:
        for digest, known in list(self._known.items()):
            if not known.used and not known.open:
                self._forget(digest, known)
        ids = sorted({known.credential.key_id for known in self._known.values()})
        for first in range(0, len(ids), _POLLED_AT_ONCE):
            some = ids[first : first + _POLLED_AT_ONCE]
            checked_s = asyncio.get_running_loop().time()
            stored = {one.key.key_id: one for one in await self._keys.find(some)}
            await self._check(some, stored, checked_s)

    async def _check(self, key_ids: Iterable[str], stored: dict[str, KeyWithSecrets], checked_s: float) -> None:
        wanted = set(key_ids)
        for digest, known in list(self._known.items()):
            key_id = known.credential.key_id
            if key_id not in wanted:
                continue
            if known.used:
                self._used.add(key_id)
                known.used = False
            try:
                until = valid_until(stored.get(key_id), known.credential.secret_hash, self._clock.now())
                if known.session_hash:
                    until = (await self._verify_session(known.session_hash)).until
            except Unauthenticated as error:
                self._end(digest, known, error.message)
            else:
                known.until, known.checked_s = until, max(checked_s, known.checked_s)

    def _end(self, digest: bytes, known: _Known, reason: str) -> None:
        self._forget(digest, known)
        now_s = asyncio.get_running_loop().time()
        for turn in known.open:
            known.open[turn] = reason
            turn.reschedule(now_s)

    def _forget(self, digest: bytes, known: _Known) -> None:
        if self._known.get(digest) is known:
            del self._known[digest]
            self._by_caller.pop(id(known.caller), None)

    async def _note_used(self) -> None:
        """Approximate and asynchronous: lost if the server is killed."""
        now_s = asyncio.get_running_loop().time()
        if self._used and now_s - self._noted_s >= _NOTED_S:
            used, self._used = sorted(self._used)[:_REMEMBERED], set()
            self._noted_s = now_s
            await self._keys.note_used(used)


def read_authorization(value: str) -> Credential:
    """Raises Unauthenticated, whose text repeats nothing of the header."""
    if value[: len(BEARER)].lower() != BEARER:
        raise Unauthenticated("the authorization header is not `Bearer kgz_...`. Send the key that way.")
    return read_key(value[len(BEARER) :].strip())


def _digest(text: str) -> bytes:
    """The cache key of a credential: keys themselves are never kept, not even in memory."""
    return sha256(text.encode(errors="replace")).digest()
