"""Workflow types as queues: the limits that an operator may set, and which pending runs may begin.

Permits are derived from the state of runs (each RUNNING run holds one), so none can leak. A rate is kept as the time at
which the next start is due if starts are evenly spaced (GCRA): one number each, correct however rarely it is read.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypedDict, get_args

import msgspec

from ..errors import InvalidArgument
from ..times import US_PER_S, Timestamp

WhenFull: TypeAlias = Literal["queue", "reject", "cancel-oldest"]

_BUNCH_S = 0.1  # how many seconds of a rate may begin at once


class TypeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """None means no limit."""

    paused: bool = False
    max_running: int | None = None
    max_running_per_key: int | None = None
    starts_per_second: float | None = None
    starts_per_second_per_key: float | None = None
    when_full: WhenFull = "queue"

    @property
    def by_key(self) -> bool:
        return self.max_running_per_key is not None or self.starts_per_second_per_key is not None

    @property
    def limiting(self) -> bool:
        """Whether claims have to check limits."""
        limited = self.max_running is not None or self.starts_per_second is not None or self.by_key
        return self.paused or limited


class TypeLimitKeywords(TypedDict, total=False):
    """Limits of a workflow type to set. None removes one; what is not given stays."""

    max_running: int | None  #: how many runs are executed at once
    max_running_per_key: int | None  #: how many runs with the same `concurrency_key`
    starts_per_second: float | None  #: how many runs begin per second
    starts_per_second_per_key: float | None  #: how many with the same `concurrency_key`
    when_full: WhenFull
    """What happens to a start beyond `max_running`: "queue" (it waits; the default), "reject" or "cancel-oldest"."""


def checked_limits(limits: TypeLimitKeywords) -> TypeLimits:
    """The limits as set on a type that has none. Raises InvalidArgument that names the limit."""
    if unknown := limits.keys() - TypeLimitKeywords.__annotations__.keys():
        names = ", ".join(TypeLimitKeywords.__annotations__)
        raise InvalidArgument(f"limits: there is no {', '.join(sorted(unknown))}. Use {names}.", field="limits")
    for name, value in limits.items():
        if name == "when_full":
            if value not in get_args(WhenFull):
                words = ", ".join(map(repr, get_args(WhenFull)))
                raise InvalidArgument(f"when_full={value!r} must be one of {words}.", field=name)
            continue
        kinds = int if name.startswith("max_running") else (int, float)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or value <= 0):
            kind = "a whole number from 1 on" if kinds is int else "a number above 0"
            raise InvalidArgument(f"{name}={value!r} must be {kind}, or None for no limit.", field=name)
    return TypeLimits(**limits)


class WorkflowTypeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A type: its limits as set by an operator, the versions that workers registered, its open runs."""

    namespace: str
    workflow_type: str
    limits: TypeLimits = TypeLimits()
    versions: tuple[str, ...] = ()
    default_version: str = ""
    open_runs: int = 0


class QueueDepth(msgspec.Struct, frozen=True, kw_only=True):
    """How many runs of a type wait for a worker, by their pinned version. `version` empty: not pinned."""

    workflow_type: str
    version: str
    waiting: int  # counted up to a cap
    oldest_since: Timestamp | None


class QueueStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A queue and the workers that serve it. `limit_reason`: why nothing is claimed although slots are free; empty if
    no limit applies."""

    depth: QueueDepth
    workers: int
    free_slots: int
    limit_reason: str


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a type's limits is used, to explain why a run waits."""

    limits: TypeLimits
    running: int
    running_of_key: int = 0
    holder_of_key: str = ""  # run id of a run that holds a permit of the key
    begins_at: Timestamp | None = None  # when the rates allow the next start


class Rate(NamedTuple):
    """A rate of evenly spaced starts per second: `due_at` is when the next one is due."""

    per_second: float
    due_at: Timestamp

    @property
    def _spacing_us(self) -> float:
        return US_PER_S / self.per_second

    @property
    def _tolerance_us(self) -> float:
        return max(0.0, self.per_second * _BUNCH_S - 1) * self._spacing_us

    def allows_at(self) -> Timestamp:
        """When the next start is allowed."""
        return math.ceil(self.due_at - self._tolerance_us)

    def allows(self, now: Timestamp) -> bool:
        return self.allows_at() <= now

    def after_start(self, now: Timestamp) -> "Rate":
        return Rate(self.per_second, max(self.due_at, now) + max(1, round(self._spacing_us)))


class Candidate(NamedTuple):
    """A PENDING run. `place`: its key's place in the rotation. `first`: never claimed, so that rates count it."""

    run_id: str
    key: str
    priority: int
    ready_at: Timestamp
    first: bool
    place: int = 0


class TypePermits:
    """The permits that the limits of a type leave now. `take` uses them up."""

    def __init__(
        self,
        limits: TypeLimits,
        *,
        wanted: int,
        running: Mapping[str, int],
        now: Timestamp,
        due_at: Timestamp = 0,
        spare: int | None = None,
    ) -> None:
        """`running`: RUNNING runs by key, those without a key under "". `spare`: what the namespace's own limit
        leaves."""
        self._limits = limits
        self._running = dict(running)
        self._now = now
        self._rate = None if limits.starts_per_second is None else Rate(limits.starts_per_second, due_at)
        self.key_rates: dict[str, Rate] = {}
        self.changed_keys: set[str] = set()
        self.again_at: Timestamp | None = None
        self.left = wanted if spare is None else min(wanted, spare)
        if limits.max_running is not None:
            self.left = min(self.left, limits.max_running - sum(running.values()))
        if limits.paused:
            self.left = 0
        self.left = max(0, self.left)

    @property
    def due_at(self) -> Timestamp:
        return 0 if self._rate is None else self._rate.due_at

    @property
    def rated(self) -> bool:
        return self._rate is not None or self._limits.starts_per_second_per_key is not None

    @property
    def full_keys(self) -> list[str]:
        """Keys of which no run may begin now."""
        limit = self._limits.max_running_per_key
        return [] if limit is None else sorted(key for key, count in self._running.items() if key and count >= limit)

    def permits_of_key(self, key: str) -> int:
        limit = self._limits.max_running_per_key
        return self.left if limit is None or not key else min(self.left, limit - self._running.get(key, 0))

    def know_keys(self, due_at: Mapping[str, Timestamp]) -> None:
        """Sets when the next start of these keys is due; for other keys it is due now."""
        if (per_second := self._limits.starts_per_second_per_key) is not None:
            self.key_rates |= {key: Rate(per_second, at) for key, at in due_at.items()}

    def take(self, candidate: Candidate) -> bool:
        """Takes a permit; returns whether the run may begin."""
        if self.left <= 0 or self.permits_of_key(candidate.key) <= 0:
            return False
        if candidate.first and not self._spend(candidate.key):
            return False
        self.left -= 1
        self._running[candidate.key] = self._running.get(candidate.key, 0) + 1
        return True

    def _spend(self, key: str) -> bool:
        """Uses one start of the rates, if they allow it now."""
        of_key = self._rate_of(key)
        for rate in (self._rate, of_key):
            if rate is not None and not rate.allows(self._now):
                at = rate.allows_at()
                self.again_at = at if self.again_at is None else min(self.again_at, at)
                return False
        if self._rate is not None:
            self._rate = self._rate.after_start(self._now)
        if of_key is not None:
            self.key_rates[key] = of_key.after_start(self._now)
            self.changed_keys.add(key)
        return True

    def _rate_of(self, key: str) -> Rate | None:
        per_second = self._limits.starts_per_second_per_key
        if per_second is None or not key:
            return None
        return self.key_rates.get(key) or Rate(per_second, 0)


def choose(permits: TypePermits, candidates: Iterable[Candidate]) -> list[Candidate]:
    """The runs that begin now, in order: higher priority first, then keys in turn, one run of each at a time."""
    ranks: dict[tuple[str, int], int] = {}
    ordered: list[tuple[int, int, int, Timestamp, Candidate]] = []
    unique = {candidate.run_id: candidate for candidate in candidates}
    for each in sorted(unique.values(), key=lambda one: (-one.priority, one.ready_at, one.run_id)):
        rank = 0
        if each.place:
            rank = ranks[each.key, each.priority] = ranks.get((each.key, each.priority), -1) + 1
        ordered.append((-each.priority, rank, each.place, each.ready_at, each))
    return [entry[-1] for entry in sorted(ordered) if permits.take(entry[-1])]


def begins_at(limits: TypeLimits, due_at: Timestamp, key_due_at: Timestamp) -> Timestamp | None:
    """When the rates of a type and of a key allow the next start. None: neither has a rate."""
    rates = ((limits.starts_per_second, due_at), (limits.starts_per_second_per_key, key_due_at))
    times = [Rate(per_second, at).allows_at() for per_second, at in rates if per_second is not None]
    return max(times, default=None)
