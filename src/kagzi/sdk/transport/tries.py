"""How long a call is tried, with growing pauses in between, and what is reported meanwhile.

It is reported that calls wait, for what, and until when: once for all callers of a connection, not once for each. A
call that has waited for a second is checked. If its last try failed, that is reported. If it has had no response at
all, the server is asked for its state: it may be gone, it may wait for its database, or it may just be busy with the
call, which is not reported.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from types import TracebackType
from typing import Self

from ...core.errors import KagziError
from ...core.providers import Rng
from ...core.times import US_PER_S, Timestamp, to_datetime
from .unreachable import Outage

logger = logging.getLogger("kagzi.connection")

FIRST_S = 1.0
"""How long a call waits before this is reported."""
SECOND_S = 10.0
LATER_S = 30.0
_PROBE_S = 10.0  # between two probes of the server
_PROBE_LATER_S = 30.0  # the same, for calls that have waited for long
_LONG_S = 60.0
_FRESH_S = 3.0  # tries follow each other faster than this; an older failure may be over

Report = Callable[[str], None]
Probe = Callable[[], Awaitable[Outage | None]]

LASTING_S = 10.0
"""A stream that lasted this long had reached a server: the next break is a new outage."""
_LEAST_S = 0.001
_CONCLUSIVE_S = 2.0  # a try that our own deadline cut shorter says nothing about the server
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class Backoff:
    """How long to wait before the next try: 50 ms to 2 s, half of it random, so that many clients do not return at the
    same time."""

    def __init__(self, rng: Rng, *, first_s: float = _FIRST_PAUSE_S, longest_s: float = _LONGEST_PAUSE_S) -> None:
        self._rng = rng
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next_s(self) -> float:
        pause = self._next_s
        self._next_s = min(pause * 2, self._longest_s)
        return pause * (0.5 + 0.5 * self._rng.fraction())

    def reset(self) -> None:
        self._next_s = self._first_s


class Waiting:
    """One call or stream that is waited for."""

    __slots__ = ("failed_at", "outage", "since", "timeout_s")

    def __init__(self, since: float, timeout_s: float | None) -> None:
        self.since = since
        self.timeout_s = timeout_s
        self.outage: Outage | None = None
        self.failed_at = 0.0

    def failed(self, outage: Outage, now: float) -> None:
        self.outage = outage
        self.failed_at = now

    def succeeded(self, now: float) -> None:
        self.outage = None
        self.since = now


class OutageNotices:
    """`probe` returns why the server in use cannot serve, or None. `report` is replaced by interactive programs."""

    def __init__(self, probe: Probe, now: Callable[[], Timestamp]) -> None:
        self._probe = probe
        self._now = now
        self.report: Report = logger.warning
        self._waiting: dict[Waiting, None] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None
        self._probing: asyncio.Task[None] | None = None
        self._probed: Outage | None = None
        self._probed_at = 0.0
        self._down_since: float | None = None
        self._reports = 0
        self._reported_at = 0.0

    def begin(self, timeout_s: float | None) -> Waiting:
        """A wait begins, for `timeout_s` at most (None: without limit), until `end`."""
        loop = asyncio.get_running_loop()
        waiting = Waiting(loop.time(), timeout_s)
        self._waiting[waiting] = None
        if self._timer is None:
            self._timer = loop.call_later(FIRST_S, self._check)
        return waiting

    def end(self, waiting: Waiting, *, answered: bool) -> None:
        self._waiting.pop(waiting, None)
        if answered:
            self.answered()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._probing is not None:
            self._probing.cancel()

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        now = loop.time()
        late = [each for each in self._waiting if now - each.since >= FIRST_S]
        failing = next((each for each in late if each.outage is not None and now - each.failed_at < _FRESH_S), None)
        if failing is not None and failing.outage is not None:
            self._is_down(failing.outage, failing, now)
        elif late:
            self._ask(late[0], now)
        if self._waiting:
            self._timer = loop.call_later(FIRST_S, self._check)

    def _ask(self, late: Waiting, now: float) -> None:
        """Probe the server: no failure explains why the call takes long."""
        if self._probing is not None:
            return
        if self._probed is not None and now - self._probed_at < _FRESH_S:
            self._is_down(self._probed, late, now)
            return
        pause_s = _PROBE_S if now - late.since < _LONG_S else _PROBE_LATER_S
        if self._down_since is not None or now - self._probed_at >= pause_s or self._probed_at < late.since:
            self._probing = asyncio.get_running_loop().create_task(self._find_out(late), name="kagzi-probe")

    async def _find_out(self, late: Waiting) -> None:
        loop = asyncio.get_running_loop()
        try:
            outage = await self._probe()
        finally:
            self._probing = None
            self._probed_at = loop.time()
        self._probed = outage
        if outage is None:
            self.answered()
        elif late in self._waiting:
            self._is_down(outage, late, loop.time())

    def _is_down(self, outage: Outage, waiting: Waiting, now: float) -> None:
        if self._down_since is None:
            self._down_since = waiting.failed_at if waiting.outage is not None else now
        due_s = (0.0, SECOND_S - FIRST_S, LATER_S)[min(self._reports, 2)]
        if self._reports and now - self._reported_at < due_s:
            return
        self._reports += 1
        self._reported_at = now
        self.report(f"{outage.brief}; {self._what_next(waiting, now)}")

    def _what_next(self, waiting: Waiting, now: float) -> str:
        if waiting.timeout_s is None:
            return "still waiting" if waiting.outage is None else "trying again until it responds"
        rest_us = int((waiting.since + waiting.timeout_s - now) * US_PER_S)
        until: datetime = to_datetime(self._now() + max(rest_us, 0)).astimezone()
        return f"trying again until {until:%H:%M:%S} (timeout {waiting.timeout_s:g} s)"

    def answered(self) -> None:
        """A server has responded. Proves nothing while other calls still fail. Cheap if there was no outage."""
        if self._down_since is None:
            return
        now = asyncio.get_running_loop().time()
        if any(each.outage is not None and now - each.failed_at < _FRESH_S for each in self._waiting):
            return
        down_s = now - self._down_since
        reports, self._reports, self._down_since, self._probed = self._reports, 0, None, None
        if reports:
            self.report(f"the server responds again, after {down_s:.0f} s")


class Tries:
    """The tries of one call or stream. Use it as a context manager: waiting is reported within it.

    `timeout_s`: of all tries together. `last_try_s`: no try begins after that. `stream`: it may last for ever, and the
    time counts from when it breaks. `hopeless_after`: this many consecutive permanent failures end
    it at once; 0: never.
    """

    def __init__(
        self,
        notices: OutageNotices,
        rng: Rng,
        *,
        timeout_s: float,
        last_try_s: float | None = None,
        stream: bool = False,
        hopeless_after: int = 0,
    ) -> None:
        self._notices = notices
        self._backoff = Backoff(rng)
        self._timeout_s = timeout_s
        self._last_try_s = timeout_s if last_try_s is None else last_try_s
        self._hopeless_after = hopeless_after
        self._stream = stream
        self._hopeless = 0
        self._time = asyncio.get_running_loop().time
        self._began_at = self._tried_at = self._time()
        self._outage: Outage | None = None

    def __enter__(self) -> Self:
        self._waiting = self._notices.begin(None if self._stream else self._timeout_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._notices.end(self._waiting, answered=error is None)

    def next_timeout_s(self, try_s: float | None = None) -> float:
        """A try begins. Returns how long it may take: `try_s`, but not beyond the end of all tries."""
        self._tried_at = self._time()
        rest_s = max(self._began_at + self._timeout_s - self._tried_at, _LEAST_S)
        return rest_s if try_s is None else min(try_s, rest_s)

    def succeeded(self) -> None:
        """A server has responded: the next failure is a new outage."""
        self._backoff.reset()
        self._hopeless = 0
        self._outage = None
        self._began_at = self._time()
        self._waiting.succeeded(self._began_at)
        if self._stream:
            self._waiting.timeout_s = None
        self._notices.answered()

    def pause_s(self, problem: "KagziError | Outage") -> float:
        """How long to wait before the next try. Raises the problem if no try is left."""
        if not isinstance(problem, Outage):
            raise problem
        now = self._time()
        tried_s = now - self._tried_at
        if self._stream and tried_s > LASTING_S:
            self.succeeded()
        if not (problem.silent and self._outage is not None and tried_s < _CONCLUSIVE_S):
            self._outage = problem
        self._waiting.failed(self._outage or problem, now)
        self._waiting.timeout_s = self._last_try_s
        self._hopeless = self._hopeless + 1 if problem.permanent else 0
        pause_s = self._backoff.next_s()
        if now + pause_s > self._began_at + self._last_try_s or 0 < self._hopeless_after <= self._hopeless:
            raise (self._outage or problem).error(now - self._began_at)
        return pause_s
