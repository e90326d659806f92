"""Supervises N equal processes: starts and watches them, restarts and replaces them, and ends them together."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from ...server.peers import PeerProcess, ProcessState
from ..exits import Exit
from .child import ChildProcess, start_child
from .supervision import HURRY

logger = logging.getLogger("kagzi.supervisor")

FAILED_STARTS = 5  # consecutive failures of one process
PAUSE_MAX_S = 30.0
SETTLED_S = 60.0  # a process that ran this long does not count as failed
_REQUESTED = (0, -signal.SIGTERM)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`grace_s`: until a process reports its own. `setup`, `pass_fds`: for every process.

    `restart_after_success`: also restart a process that exits with 0; not for workers, which exit so after a drain.
    `kill_in_a_hurry`: kill at a second signal; otherwise processes shorten their grace time themselves. `pause_s`: the
    delay before a restart; it doubles while the process keeps ending soon.
    """

    count: int
    command: Sequence[str]
    grace_s: float
    setup: Mapping[str, Any] = {}
    pass_fds: Sequence[int] = ()
    restart_after_success: bool
    kill_in_a_hurry: bool
    pause_s: float = 0.5


class _Member:
    """One process, from its start to its end."""

    def __init__(self, number: int, grace_s: float) -> None:
        self.number = number
        self.grace_s = grace_s
        self.state = ProcessState.STARTING
        self.problem = ""
        self.ready = asyncio.Event()
        self.began_s = asyncio.get_running_loop().time()
        self.child: ChildProcess

    def __str__(self) -> str:
        return f"process {self.number} (pid {self.child.pid})"

    def described(self) -> PeerProcess:
        return PeerProcess(self.number, self.child.pid, self.state, self.problem)

    async def ready_or_ended(self) -> int | None:
        """Returns None when it is ready, or its exit code if it ended before."""
        ready, ended = asyncio.ensure_future(self.ready.wait()), asyncio.ensure_future(self.child.ended())
        try:
            await asyncio.wait((ready, ended), return_when=asyncio.FIRST_COMPLETED)
            return None if self.ready.is_set() else ended.result()
        finally:
            ready.cancel()
            ended.cancel()


class _CannotStartError(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class Supervisor:
    """Runs until SIGINT, SIGTERM, the end of all processes, or a process that cannot start. Returns an exit code.

    A second signal ends the processes at once. SIGHUP replaces them one by one; each new one is ready before the old
    one is stopped. If the supervisor ends for any reason, its processes end too (`Supervision`).
    """

    def __init__(self, plan: Plan, *, on_ready: Callable[[], None]) -> None:
        self._plan = plan
        self._on_ready = on_ready
        self._current: dict[int, _Member] = {}  # by number
        self._members: set[_Member] = set()  # all running ones, including those being replaced
        self._stop = asyncio.Event()
        self._replace = asyncio.Event()
        self._code = 0

    @property
    def problem(self) -> str | None:
        """Why some processes take no work; None: all do."""
        for number in range(1, self._plan.count + 1):
            member = self._current.get(number)
            state = ProcessState.STARTING if member is None else member.state
            problem = str(state) if member is None or state is not ProcessState.READY else member.problem
            if problem:
                return f"process {number} of {self._plan.count}: {problem}"
        return None

    async def run(self) -> int:
        self._take_signals()
        serving = asyncio.ensure_future(self._serve())
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                self._code = serving.result()
        finally:
            self._stop.set()
            serving.cancel()
            stopped.cancel()
            await asyncio.wait((serving, stopped))
            codes = await asyncio.gather(*map(self._end, tuple(self._members)))
        killed = (exit_code(code) for code in codes if code not in _REQUESTED)
        return self._code or next(killed, 0)

    # --- signals ------------------------------------------------------------------------------------------------------

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_stop_signal, number)
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
            return
        if _has_terminal():  # then SIGHUP means that it was closed
            loop.add_signal_handler(signal.SIGHUP, self._on_closed_terminal)
        else:
            loop.add_signal_handler(signal.SIGHUP, self._replace.set)

    def _on_closed_terminal(self) -> None:
        """May be called twice: a shell sends SIGHUP again."""
        if not self._stop.is_set():
            self._on_stop_signal(signal.SIGHUP)

    def _on_stop_signal(self, number: signal.Signals) -> None:
        if not self._stop.is_set():
            logger.info("stopping %d processes", len(self._members))
            self._stop.set()
            return
        logger.info("stopping at once")
        for member in self._members:
            if self._plan.kill_in_a_hurry:
                self._code = 128 + number
                member.child.kill()
            else:
                member.child.send(HURRY)

    # --- serving ------------------------------------------------------------------------------------------------------

    async def _serve(self) -> int:
        """Starts the first process alone, so that an error common to all is reported once."""
        numbers = range(1, self._plan.count + 1)
        for some in (numbers[:1], numbers[1:]):
            for number in some:
                self._current[number] = await self._start(number)
            for number in some:
                member = self._current[number]
                code = await member.ready_or_ended()
                if code is not None:
                    logger.error("%s %s before it was ready", member, _ending(code))
                    return exit_code(code)
        self._on_ready()
        tasks = [asyncio.ensure_future(self._keep(number)) for number in numbers]
        replacing = asyncio.ensure_future(self._replace_all())
        try:
            await asyncio.gather(*tasks)
        except _CannotStartError as error:
            return error.code
        finally:
            everything = (*tasks, replacing)
            for task in everything:
                task.cancel()
            await asyncio.gather(*everything, return_exceptions=True)
        return Exit.OK

    async def _start(self, number: int) -> _Member:
        member = _Member(number, self._plan.grace_s)
        member.child = await start_child(
            self._plan.command,
            partial(self._on_report, member),
            setup={"number": number, **self._plan.setup},
            pass_fds=self._plan.pass_fds,
        )
        self._members.add(member)
        return member

    def _on_report(self, member: _Member, report: dict[str, Any]) -> None:
        if report["event"] == "ready":
            member.grace_s = report["grace_s"]
            member.state = ProcessState.READY
            logger.info("%s is ready", member)
            member.ready.set()
        else:
            member.problem = report["problem"]
            logger.warning("%s %s", member, f"is not ready: {member.problem}" if member.problem else "is ready again")
        self._describe()

    def _describe(self) -> None:
        """Sends the state of all processes to each of them: each reports the health of all."""
        described = [self._current[number].described() for number in sorted(self._current)]
        line = msgspec.json.encode(described).decode()
        for member in self._members:
            member.child.send(line)

    async def _keep(self, number: int) -> None:
        """Restarts a process whenever it ends. Returns when it was asked to end."""
        failed_starts = soon = 0
        while True:
            member = self._current[number]
            code = await member.child.ended()
            self._members.discard(member)
            if self._current[number] is not member:  # it was replaced
                continue
            if code == 0 and not self._plan.restart_after_success:
                member.state = ProcessState.ENDED
                logger.info("%s has ended as it was asked to", member)
                return
            if member.ready.is_set():
                lived_s = asyncio.get_running_loop().time() - member.began_s
                failed_starts, soon = 0, 0 if lived_s >= SETTLED_S else soon + 1
            else:  # wait for a database or server that is down
                failed_starts, soon = failed_starts + (code != Exit.CANNOT_CONNECT), soon + 1
            if failed_starts >= FAILED_STARTS:
                logger.error("%s %s before it was ready, %d times in a row", member, _ending(code), failed_starts)
                raise _CannotStartError(exit_code(code))
            pause_s = min(self._plan.pause_s * 2 ** max(soon - 1, 0), PAUSE_MAX_S)
            logger.warning("%s %s; it is started again in %g s", member, _ending(code), pause_s)
            member.state = ProcessState.RESTARTING
            self._describe()
            await asyncio.sleep(pause_s)
            self._current[number] = await self._start(number)

    async def _replace_all(self) -> None:
        while True:
            await self._replace.wait()
            self._replace.clear()
            logger.warning("replacing %d processes one after another", self._plan.count)
            for number in range(1, self._plan.count + 1):
                if not await self._replaced(number):
                    break

    async def _replaced(self, number: int) -> bool:
        """Returns whether to continue with the next one."""
        old = self._current[number]
        if not old.child.is_running:  # drained, or about to be restarted
            return True
        new = await self._start(number)
        code = await new.ready_or_ended()
        if code is not None:
            self._members.discard(new)
            logger.error("%s %s before it was ready; %s goes on", new, _ending(code), old)
            return False
        if self._current[number] is old and old.child.is_running:
            self._current[number] = new
            await self._end(old)
        else:  # it ended by itself and was restarted
            await self._end(new)
        return True

    async def _end(self, member: _Member) -> int:
        """Returns its exit code; 0 if it had already ended."""
        code = 0
        if member.child.is_running:
            member.state = ProcessState.STOPPING
            self._describe()
            member.child.terminate()
            code = await member.child.end_within(member.grace_s)
            if code == -signal.SIGKILL and not self._code:
                logger.warning("%s did not end within its grace time of %g s and was killed", member, member.grace_s)
        self._members.discard(member)
        return code


def same_command() -> tuple[str, ...]:
    """The command line of this process."""
    return (sys.executable, "-m", "kagzi", *sys.argv[1:])


def exit_code(code: int) -> int:
    """The exit code as in a shell: 128 plus the number of the signal."""
    return code if code >= 0 else 128 - code


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
