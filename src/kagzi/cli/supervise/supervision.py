"""The supervisor from the side of a child process."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

VARIABLE = "_KAGZI_SUPERVISION"  # set for child processes
HURRY = "hurry"
GONE = ""  # instead of a line: the supervisor has ended for any reason
_EXIT_ORPHANED = 1


class Supervision:
    """Sends reports to the supervisor, receives its lines, and ends the process when the supervisor is gone.

    Created before anything else. A terminal sends SIGINT and SIGHUP to all processes: only the supervisor acts on
    them.
    """

    def __init__(self, setup: dict[str, Any]) -> None:
        self.setup = setup
        self._control: int = setup["control"]
        self._reports: int = setup["reports"]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: Callable[[str], None] = lambda line: None
        self._end_within_s = 0.0
        for fd in (self._control, self._reports):
            os.set_inheritable(fd, False)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _ignore)  # not SIG_IGN, which child processes would inherit

    @classmethod
    def from_environment(cls) -> Self | None:
        """None in a process without a supervisor."""
        text = os.environ.pop(VARIABLE, None)
        return None if text is None else cls(json.loads(text))

    @property
    def number(self) -> int:
        """The number of this process, from 1."""
        return int(self.setup["number"])

    def report(self, event: str, **facts: Any) -> None:
        with suppress(BrokenPipeError):  # the supervisor is gone
            os.write(self._reports, (json.dumps({"event": event, **facts}) + "\n").encode())

    def watch(self) -> None:
        """Makes this process end when its supervisor does: at once before `attach`, gracefully afterwards."""
        threading.Thread(target=self._watch, name="kagzi supervision", daemon=True).start()

    def attach(self, handle: Callable[[str], None], *, end_within_s: float) -> None:
        """`handle` gets the supervisor's lines in the running loop, finally GONE. The process then has `end_within_s`
        to end; a thread enforces this even if the loop is blocked."""
        self._end_within_s = end_within_s
        self._handle = handle
        self._loop = asyncio.get_running_loop()

    def read_line(self) -> str:
        """The next line; GONE at the end. Only for a process that does not `watch`."""
        data = b""
        while not data.endswith(b"\n"):
            piece = os.read(self._control, 1)
            if not piece:
                return GONE
            data += piece
        return data.decode().strip()

    def on_next_line(self, act: Callable[[str], None]) -> None:
        """Calls `act` once, in the running loop. Only for a process that does not `watch`."""
        loop = asyncio.get_running_loop()

        def on_input() -> None:
            loop.remove_reader(self._control)
            act(self.read_line())

        loop.add_reader(self._control, on_input)

    def _watch(self) -> None:
        with os.fdopen(self._control, "rb") as lines:
            for line in lines:
                self._pass_on(line.decode().strip())
        self._pass_on(GONE)
        threading.Event().wait(self._end_within_s)
        os._exit(_EXIT_ORPHANED)

    def _pass_on(self, line: str) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: the process is about to end
                self._loop.call_soon_threadsafe(self._handle, line)


def _ignore(number: int, frame: object) -> None:
    """Ignores a signal, see `Supervision`."""
