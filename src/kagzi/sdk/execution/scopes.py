"""The identity of calls. Every ctx call gets (scope, name, occurrence) when it is made: `charge`, `charge#2`,
`task[1]/charge`, `charge[key]`.

Each task that workflow code creates has its own scope, numbered within its parent's when it is created. So two branches
with the same steps keep their own results in whatever order they finish.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Collection, Coroutine, Generator, Sequence
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from ...core.checks.values import optional_name
from ...core.errors import InvalidArgument
from ...core.limits import NAME_BYTES
from ..workflow.current import place

if TYPE_CHECKING:  # the command line imports this module early, without the rest
    from ...v1 import worker_pb2 as pb

AnyCoroutine = Coroutine[Any, Any, Any] | Generator[Any, None, Any]
_TASKS_FILE = asyncio.gather.__code__.co_filename
Factory = Callable[..., "asyncio.Future[Any]"]


_SHORT = NAME_BYTES // 4  # characters that fit in any script


def check_id(step_id: str) -> None:
    """Raises InvalidArgument for a step id that no server records."""
    optional_name(step_id, "step id")


class TaskKeeper(Protocol):
    """The run that a scope belongs to, as scopes see it."""

    @property
    def task(self) -> "pb.Task": ...

    def adopt(self, task: "asyncio.Future[Any]", /) -> None:
        """The run's own code created a task."""
        ...

    def started(self, source: "asyncio.TimerHandle | asyncio.Future[Any]", /) -> None:
        """The run's own code started a timer or a thread."""
        ...

    @property
    def on_allot(self) -> "Callable[[str], None] | None":
        """Called with each allotted id, within the call that gets it; None: not needed."""
        ...


class Scope:
    """A branch of a run, in which names are counted."""

    __slots__ = ("_counts", "_tasks", "cleanups", "group", "made_ahead", "parent", "prefix", "race", "run")

    def __init__(
        self, run: TaskKeeper, prefix: str, parent: "Scope | None" = None, *, group: str = "", race: str = ""
    ) -> None:
        self.run = run
        self.prefix = prefix  # empty, or ends with "/"
        self.parent = parent
        self.group = group  # the innermost parallel, map or race that it is a branch of
        self.race = race  # the innermost race it is in
        self.cleanups: int = 0 if parent is None else parent.cleanups  # how many ctx.cleanup() it is in
        self._counts: dict[str, int] = {}
        self._tasks = 0
        self.made_ahead: tuple[Sequence[object], dict[int, asyncio.Future[Any]]] | None = None

    def allot(self, name: str, key: object = None) -> str:
        """The id of the next call of this name. A key replaces the occurrence and may be used once."""
        counts = self._counts
        if key is not None:
            name = f"{name}[{key}]"
            if name in counts:
                raise InvalidArgument(
                    f"{self.prefix}{name}: the key is used already in this scope. Keys must be different.", field="key"
                )
        count = counts.get(name, 0) + 1
        counts[name] = count
        step_id = self.prefix + name if count == 1 else f"{self.prefix}{name}#{count}"
        if key is not None or len(step_id) > _SHORT:
            check_id(step_id)
        on_allot = self.run.on_allot
        if on_allot is not None:
            on_allot(step_id)
        return step_id

    def task_scope(self) -> "Scope":
        self._tasks += 1
        return Scope(self.run, f"{self.prefix}task[{self._tasks}]/", self, group=self.group, race=self.race)

    def branch(self, group: str, which: object, *, is_race: bool = False) -> "Scope":
        """The scope of one branch of `parallel`, `map` or `race`; `group` is the allotted id of that call."""
        race = group if is_race else self.race
        return Scope(self.run, f"{group}[{which}]/", self, group=group, race=race)

    def is_within(self, others: "Collection[Scope]") -> bool:
        """Whether it is one of these, or in a branch or task of one."""
        scope: Scope | None = self
        while scope is not None:
            if scope in others:
                return True
            scope = scope.parent
        return False

    def derive(self, what: str, run_id: str) -> bytes:
        """16 bytes that are the same on every replay and different for every call of `what` in the run."""
        count = self._counts.get(what, 0) + 1
        self._counts[what] = count
        return hashlib.blake2b(f"{run_id}\0{self.prefix}\0{what}\0{count}".encode(), digest_size=16).digest()


def spawn(loop: asyncio.AbstractEventLoop, coro: AnyCoroutine, scope: Scope) -> "asyncio.Task[Any]":
    """A task of the run in a scope that was created for it, instead of the next `task[n]`."""
    own, outside = copy_context(), copy_context()
    own.run(place.set, scope)
    outside.run(place.set, None)
    task = outside.run(partial(loop.create_task, coro, context=own))
    scope.run.adopt(task)
    return task


def _arguments_of_as_completed() -> Sequence[object] | None:
    """The list from which asyncio.as_completed() is creating tasks now. It does so in the order of a set, that is, of
    memory addresses: on replay, tasks would have other scopes and begin in another order."""
    frame = inspect.currentframe()
    for _ in range(9):
        frame = frame.f_back if frame is not None else None
        if frame is None:
            return None
        if frame.f_code.co_filename == _TASKS_FILE and frame.f_code.co_name in ("as_completed", "__init__"):
            awaitables: Any = frame.f_locals.get("fs", frame.f_locals.get("aws"))  # in 3.11, and since 3.13
            if isinstance(awaitables, (list, tuple)):
                return cast("Sequence[object]", awaitables)
            if awaitables is not None:
                raise InvalidArgument(
                    "asyncio.as_completed() in a workflow needs a list: write as_completed([...]).", field="fs"
                )
    return None


def install_task_factory(loop: asyncio.AbstractEventLoop) -> None:
    """Give tasks created in workflow code their own scopes. The loop's factory makes all others. Idempotent."""
    present = loop.get_task_factory()
    if isinstance(present, _ScopingFactory):
        return
    loop.set_task_factory(_ScopingFactory(present))


class _ScopingFactory:
    def __init__(self, inner: Factory | None) -> None:
        self._inner = inner

    def __call__(
        self, loop: asyncio.AbstractEventLoop, coro: AnyCoroutine, *, context: Variables | None = None, **more: Any
    ) -> "asyncio.Future[Any]":
        parent = place.get()
        if type(parent) is not Scope:
            return self._make(loop, coro, context, more)
        awaitables = _arguments_of_as_completed()
        if awaitables is None:
            return self._make_scoped(loop, coro, context, more, parent)
        if parent.made_ahead is None or parent.made_ahead[0] is not awaitables:
            coroutines = {id(each): each for each in awaitables if inspect.iscoroutine(each)}
            tasks = {key: self._make_scoped(loop, each, context, more, parent) for key, each in coroutines.items()}
            parent.made_ahead = (awaitables, tasks)
        ahead = parent.made_ahead[1].pop(id(coro), None)
        return self._make_scoped(loop, coro, context, more, parent) if ahead is None else ahead

    def _make_scoped(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: AnyCoroutine,
        context: Variables | None,
        more: dict[str, Any],
        parent: Scope,
    ) -> "asyncio.Future[Any]":
        # Copies a given context as well: others who share it must not see what is set here.
        own = copy_context() if context is None else context.copy()
        own.run(place.set, parent.task_scope())
        task = self._make(loop, coro, own, dict(more))
        parent.run.adopt(task)
        return task

    def _make(
        self, loop: asyncio.AbstractEventLoop, coro: AnyCoroutine, context: Variables | None, more: dict[str, Any]
    ) -> "asyncio.Future[Any]":
        if context is not None:
            more["context"] = context
        if self._inner is not None:
            return self._inner(loop, coro, **more)
        return asyncio.Task(coro, loop=loop, **more)
