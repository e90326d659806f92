"""Claims for types with limits: count used permits, choose runs. With a single writer no lock is needed."""

from typing import Any

from ....core.times import Timestamp
from ....core.workflow_types.queues import Candidate, TypeLimits, TypePermits, choose
from ...protocol import TypeKey, Want
from ...rows import write_json
from ..write.fast_path import Writer

_KEYS_AHEAD = 64  # extra keys to read: some have only runs that no worker here serves


class LimitedClaim:
    """Claims runs of one type within its limits."""

    def __init__(self, writer: Writer, want: Want, limits: TypeLimits, now: Timestamp) -> None:
        self._database = writer.database
        self._want = want
        self._limits = limits
        self._now = now
        self._versions = tuple(dict.fromkeys(want.versions))
        self.key = TypeKey(want.namespace, want.workflow_type)
        state = self._database.row("type_state", self.key)
        assert state is not None  # the type has limits
        self._due_at: Timestamp = state[0]
        self._turn: str = state[1]
        self._reached = self._turn
        self.again_at: Timestamp | None = None
        self.more = False

    def choose(self, spare: int | None) -> dict[str, Timestamp]:
        """The runs that may begin now, and since when each is ready. `spare`: how many more runs the namespace's own
        limit allows."""
        running: dict[str, int] = dict(self._database.rows("running_of_type", self.key))
        permits = TypePermits(
            self._limits,
            wanted=self._want.limit if self._versions else 0,
            running=running,
            now=self._now,
            due_at=self._due_at,
            spare=spare,
        )
        if not permits.left:
            return {}
        chosen = self._by_key(permits) if self._limits.by_key else self._by_age(permits)
        self.again_at = permits.again_at
        turn = chosen[-1].key if chosen and self._limits.by_key else self._reached
        due_at = max(permits.due_at, self._due_at)
        if (due_at, turn) != (self._due_at, self._turn):
            self._database.run("note_turn", (due_at, turn, *self.key))
        if permits.changed_keys:
            self._database.run("forget_past_key_rates", (*self.key, self._now))
            for key in sorted(permits.changed_keys):
                self._database.run("note_key_rate", (*self.key, key, permits.key_rates[key].due_at))
        return {candidate.run_id: candidate.ready_at for candidate in chosen}

    def _by_age(self, permits: TypePermits) -> list[Candidate]:
        statement = "pending_new_runs" if permits.rated else "pending_any_runs"
        candidates = [_candidate(row, 0) for row in self._of_versions(statement, permits.left)]
        if permits.rated:
            candidates += [_candidate(row, 0) for row in self._going_on(permits.left)]
        return choose(permits, candidates)

    def _by_key(self, permits: TypePermits) -> list[Candidate]:
        """Serves keys in turn, after the one served last: first one run of each, then more if permits are left."""
        full, left = set(permits.full_keys), permits.left
        depth = left + len(full) + _KEYS_AHEAD
        places = self._keys(depth)
        self.more = len(places) >= depth
        if self.more:
            self._reached = list(places)[-1]
        open_keys = [key for key in places if key not in full]
        candidates = self._first_of(open_keys, places, 1)
        if places and len(candidates) < left and not self.more:
            candidates = self._first_of(open_keys, places, -(-left // len(places)) * 2)
        others = self._of_versions("pending_without_key", left)
        if permits.rated:
            others += self._going_on(left)
        candidates += [_candidate(row, places.setdefault(row[1], len(places) + 1)) for row in others]
        if self._limits.starts_per_second_per_key is not None:
            rates = {key: self._database.row("key_rate", (*self.key, key)) for key in {one.key for one in candidates}}
            permits.know_keys({key: row[0] for key, row in rates.items() if row is not None})
        return choose(permits, candidates)

    def _keys(self, depth: int) -> dict[str, int]:
        """The keys in turn with their positions, at most `depth`."""
        places: dict[str, int] = {}
        for begin in (f"{self._turn}\x01", ""):  # nothing sorts between a key and that key plus the smallest character
            key = self._key_from(begin)
            while key is not None and len(places) < depth and (begin or key <= self._turn):
                places[key] = len(places) + 1
                key = self._key_from(f"{key}\x01")
        return places

    def _key_from(self, begin: str) -> str | None:
        row = self._database.row("key_from", (*self.key, begin))
        return None if row is None else row[0]

    def _first_of(self, keys: list[str], places: dict[str, int], per_key: int) -> list[Candidate]:
        candidates: list[Candidate] = []
        for key in keys:
            parameters = self._parameters(per_key) | {"key": key, "versions": write_json(self._versions)}
            candidates += [_candidate(row, places[key]) for row in self._database.rows("pending_of_key", parameters)]
        return candidates

    def _of_versions(self, statement: str, limit: int) -> list[tuple[Any, ...]]:
        parameters = self._parameters(limit)
        rows: list[tuple[Any, ...]] = []
        for version in (None, *self._versions):
            rows += self._database.rows(statement, parameters | {"version": version})
        return rows

    def _going_on(self, limit: int) -> list[tuple[Any, ...]]:
        return self._database.rows(
            "going_on_of_type", self._parameters(limit) | {"versions": write_json(self._versions)}
        )

    def _parameters(self, limit: int) -> dict[str, Any]:
        namespace, workflow_type = self.key
        build_id = self._want.build_id
        return {
            "namespace": namespace,
            "workflow_type": workflow_type,
            "build_id": build_id,
            "now": self._now,
            "limit": limit,
        }


def _candidate(row: tuple[Any, ...], place: int) -> Candidate:
    return Candidate(row[0], row[1], row[2], row[3], bool(row[4]), place)
