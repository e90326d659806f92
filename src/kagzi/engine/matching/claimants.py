"""Finds claimants with free slots without looking at all of them: 10,000 workers cost a start as little as ten.

Claimants that serve the same versions of the same types with the same build are a group, in which they are kept by how
many slots they had free when last looked at. One that has fewer by now is moved when it is looked at; one that has more
must be reported (`Group.note_free`). So each change is looked at once.
"""

from collections import OrderedDict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

from ...store.protocol import TypeKey
from .slots import Claimant

_Served: TypeAlias = tuple[str, str, frozenset[tuple[str, tuple[str, ...]]]]


class Group:
    """Claimants that can take the same runs."""

    def __init__(self, first: Claimant) -> None:
        self.namespace = first.namespace
        self.versions: Mapping[str, tuple[str, ...]] = first.versions
        self.build_id = first.build_id
        self._slots: dict[Claimant, int] = {}  # of all members, when last looked at
        self._by_slots: dict[int, OrderedDict[Claimant, None]] = {}  # of those with free slots
        self._heap: list[int] = []  # their numbers of slots, negative, each once; some without claimants by now
        self._in_heap: set[int] = set()

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, claimant: Claimant) -> None:
        self._slots[claimant] = 0
        self._place(claimant, claimant.offerable())

    def remove(self, claimant: Claimant) -> None:
        self._place(claimant, 0)
        del self._slots[claimant]

    def note_free(self, claimant: Claimant) -> None:
        """It may have more free slots than before."""
        if claimant in self._slots:
            self._place(claimant, claimant.offerable())

    def freest(self) -> tuple[Claimant, int] | None:
        """The claimant with the most free slots, and their number; of several, the one that has had them longest."""
        while self._heap:
            slots = -self._heap[0]
            bucket = self._by_slots.get(slots)
            if bucket is None:
                self._pop()
                continue
            claimant = next(iter(bucket))
            now_free = claimant.offerable()
            if now_free == slots:
                return claimant, slots
            self._place(claimant, now_free)
        return None

    def most_free(self, count: int) -> list[Claimant]:
        """Up to `count` claimants with free slots, those with the most first."""
        chosen: list[Claimant] = []
        passed: set[int] = set()
        while self._heap and len(chosen) < count:
            slots = -self._heap[0]
            bucket = self._by_slots.get(slots)
            unseen = 0 if bucket is None or slots in passed else len(bucket)
            while bucket and unseen and len(chosen) < count:
                claimant = next(iter(bucket))
                now_free, unseen = claimant.offerable(), unseen - 1
                if now_free == slots:
                    bucket.move_to_end(claimant)
                    chosen.append(claimant)
                else:
                    self._place(claimant, now_free)
            if not unseen:
                passed.add(slots)
                if -self._heap[0] == slots:
                    self._pop()
        for slots in passed:
            if slots in self._by_slots:
                self._push(slots)
        return chosen

    def _push(self, slots: int) -> None:
        if slots not in self._in_heap:
            self._in_heap.add(slots)
            heappush(self._heap, -slots)

    def _pop(self) -> None:
        self._in_heap.remove(-heappop(self._heap))

    def _place(self, claimant: Claimant, slots: int) -> None:
        before = self._slots[claimant]
        if before == slots:
            return
        if before > 0:
            left = self._by_slots[before]
            del left[claimant]
            if not left:
                del self._by_slots[before]
        self._slots[claimant] = slots
        if slots > 0:
            if slots not in self._by_slots:
                self._by_slots[slots] = OrderedDict()
                self._push(slots)
            self._by_slots[slots][claimant] = None


class Claimants:
    """All claimants of a server, by group and by the types that they serve."""

    def __init__(self) -> None:
        self._groups: dict[_Served, Group] = {}
        self._group_of: dict[Claimant, tuple[_Served, Group]] = {}
        self._by_type: dict[TypeKey, dict[_Served, Group]] = {}

    def __contains__(self, key: TypeKey) -> bool:
        return key in self._by_type

    def types(self) -> Iterator[TypeKey]:
        return iter(self._by_type)

    def groups(self, key: TypeKey) -> Collection[Group]:
        """The groups that serve this type."""
        groups = self._by_type.get(key)
        return () if groups is None else groups.values()

    def add(self, claimant: Claimant) -> Sequence[TypeKey]:
        """Returns the types that it serves."""
        served = claimant.namespace, claimant.build_id, frozenset(claimant.versions.items())
        keys = [TypeKey(claimant.namespace, workflow_type) for workflow_type in claimant.versions]
        group = self._groups.get(served)
        if group is None:
            group = self._groups[served] = Group(claimant)
            for key in keys:
                self._by_type.setdefault(key, {})[served] = group
        self._group_of[claimant] = served, group
        group.add(claimant)
        return keys

    def remove(self, claimant: Claimant) -> Sequence[TypeKey]:
        """Returns the types that no claimant serves any more."""
        served, group = self._group_of.pop(claimant, (None, None))
        if served is None or group is None:
            return ()
        group.remove(claimant)
        if len(group):
            return ()
        del self._groups[served]
        keys = [TypeKey(group.namespace, workflow_type) for workflow_type in group.versions]
        for key in keys:
            del self._by_type[key][served]
        unserved = [key for key in keys if not self._by_type[key]]
        for key in unserved:
            del self._by_type[key]
        return unserved

    def note_free(self, claimant: Claimant) -> None:
        """It may have more free slots than before."""
        known = self._group_of.get(claimant)
        if known is not None:
            known[1].note_free(claimant)


def serves_any(group: Group, keys: Container[TypeKey]) -> bool:
    """Whether the group serves one of these types."""
    namespace = group.namespace
    return any(TypeKey(namespace, workflow_type) in keys for workflow_type in group.versions)
