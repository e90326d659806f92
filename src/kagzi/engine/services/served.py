"""Names that no worker serves: warns callers that start runs of them, and logs types whose runs keep waiting.

A wrong warning is worse than none. So a warning requires that no worker of this server serves the name, and that a read
of the store begun after the request shows no living worker, on any server, that does. Reads are shared and limited in
rate for each namespace: a start of a served name costs none, and nobody can cause many.
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
_READS_IN_A_ROW = 10.0  # per namespace
_REFILL_S = 0.5
_SERVED_REMEMBERED_S = 5.0
_WORKERS_READ = 1_000
_NAMESPACES = 1_000
_TYPES = 10_000
_CHILDREN = 100
_COMPARISONS = 8  # per read: searching for similar names blocks the event loop


class Named(NamedTuple):
    """A type as named by a caller, with the requested version, if any."""

    namespace: str
    workflow_type: str
    version: str = ""


class _Seen(NamedTuple):
    """What the living workers of a namespace serve. `whole`: all of them were read."""

    begun_at: float
    versions: Mapping[str, frozenset[str]]
    whole: bool


class ServedTypes:
    """`logged_after_s`: how long runs of a type have to wait before a missing worker is logged."""

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
        """The warnings for a caller that names these types, in order; empty where a worker serves the type, or where
        that is unknown. Never raises."""
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
        """As `warnings`, for one type."""
        return (await self.warnings([named], consequence))[0]

    def _pinned(self, key: TypeKey, version: str) -> str:
        try:
            return self._versions.pin_known(key, version) or version
        except PreconditionFailed:
            return version

    async def _unserved(self, key: TypeKey, version: str, since: float) -> str:
        """The warning, or empty if it is served, or no read is more recent than the request."""
        now = asyncio.get_running_loop().time()
        seen = self._seen.get(key.namespace)
        if seen is not None and now - seen.begun_at < _SERVED_REMEMBERED_S and _serves(seen, key, version):
            return ""
        if seen is None or seen.begun_at < since:
            if not self._may_read(key.namespace, now):
                return ""  # a worker may have connected since the last read
            try:
                seen = await self._read(key.namespace, now)
            except (KagziError, TimeoutError):
                return ""
        if not seen.whole or _serves(seen, key, version) or self._matcher.serves(key, version):
            return ""
        return unserved(key.workflow_type, version, seen.versions, self._similar(key, seen))

    async def similar(self, key: TypeKey) -> str | None:
        """A similar name that workers serve, for a name that none serves."""
        now = asyncio.get_running_loop().time()
        seen = self._seen.get(key.namespace)
        if seen is None or not seen.whole or now - seen.begun_at >= _REFILL_S:
            try:
                seen = await self._read(key.namespace, now)
            except (KagziError, TimeoutError):
                return None
        return self._similar(key, seen)

    def _may_read(self, namespace: str, now: float) -> bool:
        """Allows a burst of reads, then one for each refill of the allowance."""
        left, at = self._allowance.get(namespace, (_READS_IN_A_ROW, now))
        left = min(_READS_IN_A_ROW, left + (now - at) / _REFILL_S)
        self._allowance[namespace] = (left - 1 if left >= 1 else left, now)
        return left >= 1

    async def _read(self, namespace: str, begun_at: float) -> _Seen:
        if len(self._seen) >= _NAMESPACES:
            self._seen.clear()
            self._compared.clear()
            self._allowance.clear()
        # Set before the read: concurrent callers neither read too nor use a read that began before their request.
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

    # --- log ----------------------------------------------------------------------------------------------------------

    def child_started(self, key: TypeKey, version: str, parent: Holding) -> None:
        """A child waits that no worker connected here serves: the worker of its parent may have to be warned."""
        if parent.holder is not None and len(self._children) < _CHILDREN:
            self._children.append((key, version, parent))
            self._something_to_say.set()

    def noticed_pending(self, keys: Sequence[TypeKey]) -> None:
        """Types with runs that wait to be claimed, from the last poll."""
        now = asyncio.get_running_loop().time()
        alone = {key for key in keys if not self._matcher.serves(key)}
        if len(keys) < POLL_TYPES or len(self._waiting_since) >= _TYPES:  # a full poll omits some types, in turn
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
            return  # served, or unknown: the next poll tries again
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
