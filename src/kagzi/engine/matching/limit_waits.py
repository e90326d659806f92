"""Types whose runs wait for a permit: checked again only when one may have become free.

Permits become free when runs end, sleep or are handed back, on any server. A server that waits for one asks the others
to notify it; they do so for a while. The regular poll of every server finds what was missed.
"""

import asyncio
from collections.abc import Callable, Iterable

from ...core.providers import Clock
from ...core.times import US_PER_S
from ...store.protocol import Claimed, TypeKey

ASK_S = 5.0  # how often others are asked again
_NOTIFY_S = 3 * ASK_S  # how long a server that asked is notified
_FIRST_PAUSE_S = 0.01  # after a claim that only found runs that no worker here serves, and did not reach all
_LONGEST_PAUSE_S = 5.0


class LimitWaits:
    """`mark`: look for work of a type here, and if no worker here can take it, notify the other servers. `announce`:
    notify them now. `ask`: ask them to report free permits."""

    def __init__(
        self,
        clock: Clock,
        *,
        mark: Callable[[TypeKey], None],
        announce: Callable[[TypeKey], None],
        ask: Callable[[TypeKey], None],
    ) -> None:
        self._clock = clock
        self._mark = mark
        self._announce = announce
        self._ask = ask
        self._limited: set[TypeKey] = set()
        self._waiting: set[TypeKey] = set()  # an empty type: for a permit of the namespace
        self._requested_until: dict[TypeKey, float] = {}
        self._notifying: dict[TypeKey, float] = {}  # requests of other servers, until when
        self._freed: set[TypeKey] = set()  # to be announced if no worker here takes it
        self._timers: dict[TypeKey, asyncio.TimerHandle] = {}
        self._fruitless: dict[TypeKey, int] = {}

    def is_limited(self, key: TypeKey) -> bool:
        """Whether starts have to wait for a claim, as far as this server knows."""
        return key in self._limited

    def limited(self, key: TypeKey) -> None:
        """A run was not created as leased although a worker was available. The next claim updates this."""
        self._limited.add(key)

    def learn(self, types: Iterable[TypeKey], claimed: Claimed) -> None:
        """Updates the state of these types with the result of a claim."""
        keys = set(types)
        self._limited -= keys
        self._limited |= claimed.limited
        waiting = claimed.waiting
        self._waiting -= keys | {TypeKey(key.namespace, "") for key in keys}
        self._waiting |= waiting
        for key in waiting:
            self._ask_others(key)
        for key in keys:
            self._cancel(key)
        for key, at in claimed.again_at.items():
            self._mark_later(key, max(0.0, (at - self._clock.now()) / US_PER_S))
        got = {TypeKey(run.run.namespace, run.workflow_type) for run in claimed.runs}
        for key in keys & self._freed:
            self._freed.discard(key)
            if key not in got:
                self._announce(key)
        for key in keys:
            self._mark_again(key, reached_all=key not in claimed.more, got_some=key in got)

    def _mark_again(self, key: TypeKey, *, reached_all: bool, got_some: bool) -> None:
        if reached_all or got_some:
            self._fruitless.pop(key, None)
            if not reached_all:
                self._mark(key)
            return
        times = self._fruitless[key] = self._fruitless.get(key, 0) + 1
        self._mark_later(key, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(times, 16)))

    def freed(self, key: TypeKey) -> None:
        """A run of this type has given up its permit."""
        if not (self._waiting or self._notifying):
            return
        whole = TypeKey(key.namespace, "")
        now = asyncio.get_running_loop().time()
        notified = self._matching(self._notifying, key, whole)
        for each in [each for each in notified if self._notifying[each] <= now]:
            del self._notifying[each]
            notified.remove(each)
        self._freed.update(notified)
        for each in {*notified, *self._matching(self._waiting, key, whole)}:
            self._mark(each)

    def freed_in(self, namespace: str) -> None:
        """A run of unknown type in this namespace has given up its permit."""
        if not (self._waiting or self._notifying):
            return
        for key in [
            key for key in {*self._waiting, *self._notifying} if key.namespace == namespace and key.workflow_type
        ]:
            self.freed(key)

    @staticmethod
    def _matching(keys: Iterable[TypeKey], key: TypeKey, whole: TypeKey) -> list[TypeKey]:
        """The type itself; or, if a permit of the whole namespace is awaited, all types of the namespace."""
        keys = set(keys)
        if whole in keys:
            return [each for each in keys if each.namespace == key.namespace and each.workflow_type]
        return [key] if key in keys else []

    def wanted_elsewhere(self, key: TypeKey) -> None:
        """Another server waits for a permit. If this is new, one may have become free just before the request."""
        now = asyncio.get_running_loop().time()
        is_new = self._notifying.get(key, 0.0) <= now
        self._notifying[key] = now + _NOTIFY_S
        if is_new and key.workflow_type:
            self._announce(key)

    def forget(self, key: TypeKey) -> None:
        """No worker here serves it any more."""
        self._waiting.discard(key)
        self._limited.discard(key)
        self._freed.discard(key)
        self._requested_until.pop(key, None)
        self._fruitless.pop(key, None)
        self._cancel(key)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _ask_others(self, key: TypeKey) -> None:
        now = asyncio.get_running_loop().time()
        if self._requested_until.get(key, 0.0) <= now:
            self._requested_until[key] = now + ASK_S
            self._ask(key)

    def _mark_later(self, key: TypeKey, after_s: float) -> None:
        self._cancel(key)
        self._timers[key] = asyncio.get_running_loop().call_later(after_s, self._mark, key)

    def _cancel(self, key: TypeKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
