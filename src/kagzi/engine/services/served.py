"""Names that no worker serves: said to who starts a run of one, and in the log if such runs go on waiting.

A wrong warning is worse than none. So one is given only if no worker of this server serves the name and a read of the
store that was begun after the question shows no living worker, of whatever server, that does. Such reads are shared and
at most one in a while for each namespace: a start of a name that is served costs none, and nobody can cause many.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...core.errors import KagziError, PreconditionFailed
from ...core.limits import POLL_TYPES
from ...core.providers import Clock
from ...core.states import WorkerStatus
from ...core.workflow_types.names import similar_name, unserved
from ...store.protocol import Store, TypeKey
from ..matching.lease_registry import Holding
from ..matching.liveness import Liveness
from ..matching.matcher import Matcher
from .versions import Versions

logger = logging.getLogger("kagzi.engine")

RUN_WAITS = "The run waits until one does."
RUNS_WAIT = "Its runs will wait until one does."
CHILD_WAITS = "The child run waits until one does."
LIMITS_WAIT = "The setting takes effect when one does."
_LOGGED_AGAIN_S = 600.0
_READ_TIMEOUT_S = 2.0
_READS_IN_A_ROW = 10.0  # of one namespace
_REFILL_S = 0.5
_SERVED_REMEMBERED_S = 5.0
_WORKERS_READ = 1_000
_NAMESPACES = 1_000
_TYPES = 10_000
_CHILDREN = 100
_COMPARISONS = 8  # per read: looking for similar names takes the loop's time


class Named(NamedTuple):
    """A type as somebody named it, with the version asked for, if any."""

    namespace: str
    workflow_type: str
    version: str = ""


class _Seen(NamedTuple):
    """What the living workers of a namespace serve. `whole`: all of them were read."""

    begun_at: float
    versions: Mapping[str, frozenset[str]]
    whole: bool


class ServedTypes:
    """`logged_after_s`: how long runs of a type have to wait before the log says that nobody serves it."""

    def __init__(self, store: Store, *, clock: Clock, liveness: Liveness, matcher: Matcher, versions: Versions) -> None:
        self.logged_after_s = 10.0
        self._store = store
        self._clock = clock
        self._liveness = liveness
        self._matcher = matcher
        self._versions = versions
        self._seen: dict[str, _Seen] = {}
        self._compared: dict[str, int] = {}
        self._allowance: dict[str, tuple[float, float]] = {}
        self._waiting_since: dict[TypeKey, float] = {}
        self._logged_at: dict[TypeKey, float] = {}
        self._children: list[tuple[TypeKey, str, Holding]] = []
        self._something_to_say = asyncio.Event()

    async def warnings(self, named: Sequence[Named], consequence: str) -> list[str]:
        """What to say to somebody who names these types, in their order; empty where a worker serves it, or where that
        is not known. Never raises."""
        since = asyncio.get_running_loop().time()
        texts: dict[Named, str] = {}
        for each in named:
            if each not in texts:
                key = TypeKey(each.namespace, each.workflow_type)
                version = self._pinned(key, each.version)
                words = "" if self._matcher.serves(key, version) else await self._unserved(key, version, since)
                texts[each] = f"{words} {consequence}" if words else ""
        return [texts[each] for each in named]

    async def warning(self, named: Named, consequence: str) -> str:
        """The same of one type."""
        return (await self.warnings([named], consequence))[0]

    def _pinned(self, key: TypeKey, version: str) -> str:
        try:
            return self._versions.pin_known(key, version) or version
        except PreconditionFailed:
            return version

    async def _unserved(self, key: TypeKey, version: str, since: float) -> str:
        """In words, or empty: it is served, or nothing is known that is not older than the question."""
        now = asyncio.get_running_loop().time()
        seen = self._seen.get(key.namespace)
        if seen is not None and now - seen.begun_at < _SERVED_REMEMBERED_S and _serves(seen, key, version):
            return ""
        if seen is None or seen.begun_at < since:
            if not self._may_read(key.namespace, now):
                return ""  # somebody may have come since the last one
            try:
                seen = await self._read(key.namespace, now)
            except (KagziError, TimeoutError):
                return ""
        if not seen.whole or _serves(seen, key, version) or self._matcher.serves(key, version):
            return ""
        return unserved(key.workflow_type, version, seen.versions, self._similar(key, seen))

    async def similar(self, key: TypeKey) -> str | None:
        """A name that workers serve and that looks like this one, which none does."""
        now = asyncio.get_running_loop().time()
        seen = self._seen.get(key.namespace)
        if seen is None or not seen.whole or now - seen.begun_at >= _REFILL_S:
            try:
                seen = await self._read(key.namespace, now)
            except (KagziError, TimeoutError):
                return None
        return self._similar(key, seen)

    def _may_read(self, namespace: str, now: float) -> bool:
        """A few reads in a row, and then one each time that the allowance is filled up by one."""
        left, at = self._allowance.get(namespace, (_READS_IN_A_ROW, now))
        left = min(_READS_IN_A_ROW, left + (now - at) / _REFILL_S)
        self._allowance[namespace] = (left - 1 if left >= 1 else left, now)
        return left >= 1

    async def _read(self, namespace: str, begun_at: float) -> _Seen:
        if len(self._seen) >= _NAMESPACES:
            self._seen.clear()
            self._compared.clear()
            self._allowance.clear()
        # Noted before: whoever asks meanwhile neither reads as well nor learns anything from a read begun before it
        # asked.
        self._seen[namespace] = _Seen(begun_at, {}, whole=False)
        async with asyncio.timeout(_READ_TIMEOUT_S):
            rows = await self._store.list_workers(
                namespace,
                workflow_type=None,
                status=None,
                cursor=None,
                limit=_WORKERS_READ,
                alive_since=self._liveness.alive_since(self._clock.now()),
            )
        versions: dict[str, set[str]] = {}
        for worker in rows.rows:
            if worker.status is not WorkerStatus.OFFLINE:
                for pair in worker.served:
                    versions.setdefault(pair.workflow_type, set()).add(pair.version)
        frozen = {workflow_type: frozenset(served) for workflow_type, served in versions.items()}
        seen = self._seen[namespace] = _Seen(begun_at, frozen, whole=not rows.has_more)
        self._compared[namespace] = 0
        return seen

    def _similar(self, key: TypeKey, seen: _Seen) -> str | None:
        compared = self._compared.get(key.namespace, 0)
        if compared >= _COMPARISONS:
            return None
        self._compared[key.namespace] = compared + 1
        return similar_name(key.workflow_type, sorted(seen.versions))

    # --- in the log ---------------------------------------------------------------------------------------------------

    def child_started(self, key: TypeKey, version: str, parent: Holding) -> None:
        """A child that nobody connected here serves waits: whoever executes its parent is to be warned."""
        if parent.holder is not None and len(self._children) < _CHILDREN:
            self._children.append((key, version, parent))
            self._something_to_say.set()

    def noticed_pending(self, keys: Sequence[TypeKey]) -> None:
        """Types with runs that wait to be claimed, as the last poll has them."""
        now = asyncio.get_running_loop().time()
        alone = {key for key in keys if not self._matcher.serves(key)}
        if len(keys) < POLL_TYPES or len(self._waiting_since) >= _TYPES:  # a full poll leaves out some, in turn
            self._waiting_since = {key: since for key, since in self._waiting_since.items() if key in alone}
        for key in alone:
            if now - self._waiting_since.setdefault(key, now) >= self.logged_after_s and self._may_log(key, now):
                self._something_to_say.set()

    def _may_log(self, key: TypeKey, now: float) -> bool:
        return now - self._logged_at.get(key, -_LOGGED_AGAIN_S) >= _LOGGED_AGAIN_S

    async def run(self) -> None:
        """Warns of children and writes the log lines, one after the other."""
        while True:
            await self._something_to_say.wait()
            self._something_to_say.clear()
            children, self._children = self._children, []
            warnings = await self.warnings([Named(*key, version) for key, version, _ in children], CHILD_WAITS)
            for warning, (_, _, parent) in zip(warnings, children, strict=True):
                if warning and parent.holder is not None:
                    parent.holder.notify(parent, "warning", warning)
            now = asyncio.get_running_loop().time()
            for key, since in list(self._waiting_since.items()):
                if now - since >= self.logged_after_s and self._may_log(key, now):
                    await self._log(key, now, now - since)

    async def _log(self, key: TypeKey, since: float, waited_s: float) -> None:
        words = await self._unserved(key, "", since)
        if not words:
            return  # served, or not known: the next poll asks again
        if len(self._logged_at) >= _TYPES:
            self._logged_at.clear()
        self._logged_at[key] = asyncio.get_running_loop().time()
        logger.warning(
            "%s Its runs in namespace %r have waited for %.0f s and keep waiting until one does.",
            words,
            key.namespace,
            waited_s,
        )


def _serves(seen: _Seen, key: TypeKey, version: str) -> bool:
    versions = seen.versions.get(key.workflow_type, frozenset())
    return version in versions if version else bool(versions)
