"""Watches what workflow code calls outside of steps: clocks, random numbers, threads, and external effects.

It uses a profiling hook on the event loop's thread, set only while runs are watched.
"""

import asyncio
import concurrent.futures
import random  # noqa: TID251  to recognise its functions
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...sdk.execution.scopes import Scope
from ...sdk.workflow.current import place
from .report import Kind
from .sources import Culprit, culprit_of


class Rule(NamedTuple):
    kind: Kind
    message: str
    remedy: str


_CLOCK = Rule("clock", "returns another time on every replay", "Write ctx.now() instead, or read the clock in a step.")
_RANDOM = Rule("random", "returns another value on every replay", "Write ctx.random() instead, or draw in a step.")
_UUID = Rule("random", "returns another value on every replay", "Write ctx.uuid() instead, or make it in a step.")
_INTO_A_STEP = 'Put it into a step: await ctx.step("name").run(function, ...).'
_EFFECT = Rule("blocking", "in workflow code happens again on every replay", _INTO_A_STEP)
_NETWORK = Rule("network", "in workflow code happens again on every replay", _INTO_A_STEP)
_SLEEP = Rule(
    "blocking",
    "in workflow code blocks the worker, and does so again on every replay",
    'Write await ctx.sleep("name", "5s") instead.',
)
_THREAD = Rule(
    "thread",
    "in workflow code runs beside the workflow: a replay does not wait for it, and starts it again",
    'Put it into a step: a step whose function is not async runs in a thread. await ctx.step("name").run(function).',
)

# Functions written in C, by module and name, or by class and name.
_BUILTINS: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter",
            "time.perf_counter_ns", "time.process_time", "time.clock_gettime", "time.localtime", "time.gmtime",
            "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
        ),
        _CLOCK,
    ),
    "posix.urandom": _RANDOM,
    "nt.urandom": _RANDOM,
    "posix.getrandom": _RANDOM,
    "_uuid.generate_time_safe": _UUID,
    "time.sleep": _SLEEP,
    **dict.fromkeys(
        (
            "_socket.getaddrinfo", "socket.connect", "socket.connect_ex", "socket.bind", "socket.send",
            "socket.sendall", "socket.sendto", "socket.recv",
        ),
        _NETWORK,
    ),
    **dict.fromkeys(
        (
            "io.open", "_io.open", "builtins.input", "sqlite3.connect", "_sqlite3.connect",
            *(
                f"{system}.{name}"
                for system in ("posix", "nt")
                for name in (
                    "system", "open", "mkdir", "rmdir", "remove", "unlink", "rename", "replace", "symlink", "link",
                    "truncate", "chmod", "chown", "kill", "fork", "putenv", "unsetenv", "listdir", "scandir",
                )
            ),
        ),
        _EFFECT,
    ),
}  # fmt: skip
_RANDOM_METHODS = frozenset({"random", "getrandbits"})

# Functions written in Python, by their code object.
_FUNCTIONS: dict[CodeType, tuple[str, Rule]] = {
    threading.Thread.start.__code__: ("threading.Thread.start", _THREAD),
    concurrent.futures.ThreadPoolExecutor.submit.__code__: ("ThreadPoolExecutor.submit", _THREAD),
    asyncio.to_thread.__code__: ("asyncio.to_thread", _THREAD),
    subprocess.Popen.__init__.__code__: ("subprocess.Popen", _EFFECT),
    asyncio.create_subprocess_exec.__code__: ("asyncio.create_subprocess_exec", _EFFECT),
    asyncio.create_subprocess_shell.__code__: ("asyncio.create_subprocess_shell", _EFFECT),
    asyncio.open_connection.__code__: ("asyncio.open_connection", _NETWORK),
}
# What these libraries call for their own purposes does not reach the workflow.
_INWARD = frozenset({
    "asyncio", "concurrent", "contextlib", "contextvars", "copy", "importlib", "inspect", "json", "linecache",
    "logging", "pydantic", "queue", "re", "selectors", "threading", "tokenize", "traceback", "typing", "warnings",
    "weakref", "zoneinfo",
})  # fmt: skip
_NOT_BY_LIBRARIES: tuple[Kind, ...] = ("clock", "random", "blocking", "network")
OnSuspect = Callable[[str, Rule, Culprit], None]


@contextmanager
def watching(on_suspect: OnSuspect) -> Generator[None]:
    """Call `on_suspect` for every call of workflow code in the block that is not replay-safe."""
    before = sys.getprofile()
    sys.setprofile(_Watch(on_suspect))
    try:
        yield
    finally:
        sys.setprofile(before)


class _Watch:
    def __init__(self, on_suspect: OnSuspect) -> None:
        self._on_suspect = on_suspect
        self._time_of_loop = _code(asyncio.get_running_loop().time)

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            if type(place.get()) is Scope and (known := _rule_of(called)) is not None:
                self._note(*known, frame)
        elif event == "call":
            code = frame.f_code
            if code is self._time_of_loop:
                self._note_time_of_loop(frame)
            elif code in _FUNCTIONS and type(place.get()) is Scope:
                self._note(*_FUNCTIONS[code], frame.f_back)

    def _note_time_of_loop(self, frame: FrameType) -> None:
        """Report the loop's time only if user code reads it: asyncio's timers use it, too."""
        culprit = culprit_of(frame.f_back)
        if type(place.get()) is Scope and culprit is not None and not culprit.through:
            self._on_suspect("loop.time()", _CLOCK, culprit)

    def _note(self, name: str, rule: Rule, frame: FrameType | None) -> None:
        culprit = culprit_of(frame)
        if culprit is None or (rule.kind in _NOT_BY_LIBRARIES and any(map(_is_inward, culprit.through))):
            return
        if culprit.entry.startswith("uuid."):
            rule = _UUID
        name = culprit.entry.replace("random.Random.", "random.") or name
        self._on_suspect(f"{name}()", rule, culprit)


def _rule_of(called: Any) -> tuple[str, Rule] | None:
    name: str = getattr(called, "__name__", "")
    owner = getattr(called, "__self__", None)
    if name in _RANDOM_METHODS and isinstance(owner, random.Random):
        # An instance that the workflow has seeded itself returns the same values on replay.
        shared = owner is getattr(random, "_inst", None) or isinstance(owner, random.SystemRandom)
        return (f"random.{name}", _RANDOM) if shared else None
    module = getattr(called, "__module__", None)
    qualified = f"{module}.{name}" if module else getattr(called, "__qualname__", name)
    rule = _BUILTINS.get(qualified)
    return None if rule is None else (qualified.removeprefix("_").removeprefix("io."), rule)


def _is_inward(file: str) -> bool:
    """Whether a file belongs to one of these packages or modules."""
    if file.startswith("<frozen "):  # an import
        return True
    path = PurePath(file)
    return path.stem in _INWARD or any(part in _INWARD for part in path.parent.parts[-3:])


def _code(function: Any) -> CodeType | None:
    return getattr(function, "__code__", None)
