"""Claims for types with limits: under the lock of the type, count used permits, choose runs, lease them."""

from collections.abc import Iterable, Sequence, Set
from typing import Any, NamedTuple

from ....core.times import Timestamp
from ....core.traces.ids import OWN_TRACE_SEQ
from ....core.workflow_types.queues import Candidate, TypePermits, choose
from ...protocol import TypeKey, Want
from ...rows import read_limits
from ..connection.connection import Row, Rows, Session

_KEYS_AHEAD = 64  # extra keys to read: some have only runs that no worker here serves


class Leasing(NamedTuple):
    """What a claim writes to the runs that it takes."""

    nonce: int
    now: Timestamp
    until: Timestamp
    old_before: Timestamp = 0

    @property
    def parameters(self) -> dict[str, Any]:
        return self._asdict() | {"long_seq": OWN_TRACE_SEQ}


async def lock_types(session: Session, types: Iterable[TypeKey]) -> dict[TypeKey, Row]:
    """The rows of those of these types that have limits, locked until the transaction ends."""
    keys = sorted(types)
    if not keys:
        return {}
    rows = await session.read(
        "lock_types", namespaces=[key.namespace for key in keys], workflow_types=[key.workflow_type for key in keys]
    )
    return {TypeKey(row["namespace"], row["workflow_type"]): row for row in rows}


class LimitedClaim:
    """Claims runs of one type within its limits, for workers of one build that serve the same versions."""

    def __init__(self, session: Session, row: Row, wants: Sequence[Want], leasing: Leasing) -> None:
        self._session = session
        self._wants = wants
        self._versions = list(wants[0].versions)
        self._build_id = wants[0].build_id
        self._leasing = leasing
        self._now = leasing.now
        self._turn: str = row["turn"]
        self._due_at: Timestamp = row["next_start_at"]
        self.limits = read_limits(row)
        self.key = TypeKey(row["namespace"], row["workflow_type"])
        self._type = {"namespace": self.key.namespace, "workflow_type": self.key.workflow_type}
        self.wanted = sum(want.limit for want in wants)
        self._key_times: dict[str, Timestamp] = {}  # when each key may start its next run, after this claim
        self.again_at: Timestamp | None = None
        self.more = False
        self.waiting = False  # runs are left for lack of permits

    async def claim(self, spare: int | None) -> Rows:
        """Rows as `claim_runs` returns them. `spare`: how many more runs the namespace's own limit allows."""
        if self.limits.paused or spare == 0 or not self._versions:
            return ()
        chosen = await (self._by_key(spare) if self.limits.by_key else self._by_age(spare))
        if not chosen:
            return ()
        workers = [want.worker_id for want in self._wants for _ in range(want.limit)]
        rows = await self._session.read(
            "claim_chosen",
            **self._type,
            **self._leasing.parameters,
            version=self._versions[0],
            build_id=self._build_id,
            run_ids=[candidate.run_id for candidate in chosen],
            worker_ids=workers[: len(chosen)],
            next_start_at=self._due_at,
            turn=self._turn,
        )
        await self._note_key_rates(chosen, {row["run_id"] for row in rows})
        return rows

    async def _note_key_rates(self, chosen: Sequence[Candidate], claimed: Set[str]) -> None:
        """Only for runs that were leased: a run that another transaction had locked was not started."""
        keys = sorted({each.key for each in chosen if each.run_id in claimed} & self._key_times.keys())
        if keys:
            times = [self._key_times[key] for key in keys]
            await self._session.read("note_key_rates", **self._type, keys=keys, times=times, now=self._now)

    def _permits(self, running: dict[str, int], spare: int | None) -> TypePermits:
        return TypePermits(
            self.limits, wanted=self.wanted, running=running, now=self._now, due_at=self._due_at, spare=spare
        )

    def _choose(self, permits: TypePermits, candidates: list[Candidate]) -> list[Candidate]:
        chosen = choose(permits, candidates)
        self.again_at = permits.again_at
        self._due_at = max(permits.due_at, self._due_at)
        if len(chosen) < len({candidate.run_id for candidate in candidates}):
            self.waiting = True
        return chosen

    async def _by_age(self, spare: int | None) -> list[Candidate]:
        rows = await self._session.read("running_of_type", **self._type)
        permits = self._permits({row["key"]: row["runs"] for row in rows}, spare)
        if not permits.left:
            return []
        candidates = _candidates(await self._read("pending_of_type", limit=permits.left, only_new=permits.rated))
        if permits.rated:
            candidates += _candidates(await self._read("going_on_of_type", limit=permits.left))
        return self._choose(permits, candidates)

    async def _by_key(self, spare: int | None) -> list[Candidate]:
        """Serves keys in turn, after the one served last: first one run of each, then more if permits are left."""
        depth = self.wanted + _KEYS_AHEAD
        running, places, candidates = await self._scan(1, depth)
        permits = self._permits(running, spare)
        if not permits.left:
            return []
        left = permits.left
        self.more = len(places) >= depth + len(running)
        reached = list(places)[-1] if self.more else self._turn
        one_each = self.limits.max_running_per_key == 1 and "" not in places
        if places and len(candidates) < left and not self.more and not one_each:
            _, _, candidates = await self._scan(-(-left // len(places)) * 2, depth)
        if permits.rated:
            candidates += [_candidate(row, 0) for row in await self._read("going_on_of_type", limit=left)]
            await self._know_rates(permits, candidates)
        chosen = self._choose(permits, _placed(candidates, places))
        self.waiting = self.waiting or any(key in places for key in permits.full_keys)
        self._turn = chosen[-1].key if chosen else reached
        self._key_times = {key: permits.key_rates[key].due_at for key in permits.changed_keys}
        if self.more and not chosen:
            await self._session.read("note_turn", **self._type, next_start_at=self._due_at, turn=self._turn)
        return chosen

    async def _know_rates(self, permits: TypePermits, candidates: list[Candidate]) -> None:
        if self.limits.starts_per_second_per_key is not None:
            keys = sorted({candidate.key for candidate in candidates})
            rows = await self._session.read("key_rates", **self._type, keys=keys)
            permits.know_keys({row["key"]: row["next_start_at"] for row in rows})

    async def _scan(self, per_key: int, depth: int) -> tuple[dict[str, int], dict[str, int], list[Candidate]]:
        """Running runs by key; the keys in turn with their positions, at most `depth` beyond those with running runs;
        and the first runs of each key that is not full."""
        running: dict[str, int] = {}
        places: dict[str, int] = {}
        candidates: list[Candidate] = []
        for row in await self._read(
            "pending_by_key",
            limit=per_key,
            after_key=self._turn,
            most_keys=depth,
            max_running_per_key=self.limits.max_running_per_key,
            max_running=self.limits.max_running,
        ):
            place: int | None = row["place"]
            if place is None:
                running[row["key"]] = row["runs"]
                continue
            if place:
                places[row["key"]] = place
            if row["run_id"] is not None:
                candidates.append(_candidate(row, place))
        return running, places, candidates

    async def _read(self, statement: str, /, **parameters: object) -> Rows:
        builds = {"versions": self._versions, "build_id": self._build_id}
        return await self._session.read(statement, **self._type, **builds, now=self._now, **parameters)


def _candidate(row: Row, place: int) -> Candidate:
    return Candidate(row["run_id"], row["key"], row["priority"], row["ready_at"], row["first"], place)


def _candidates(rows: Rows) -> list[Candidate]:
    return [_candidate(row, 0) for row in rows]


def _placed(candidates: list[Candidate], places: dict[str, int]) -> list[Candidate]:
    """Adds the positions of their keys in the turn; a key without one comes last."""
    return [each._replace(place=places.setdefault(each.key, len(places) + 1)) for each in candidates]
