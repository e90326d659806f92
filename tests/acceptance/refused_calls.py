"""What a server or the SDK may refuse of a workflow's calls: one cell for each call and kind of refusal that exist."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from kagzi import (
    AlreadyExists,
    Context,
    InvalidArgument,
    PreconditionFailed,
    ResourceExhausted,
    Retry,
    Signal,
    StepError,
    workflow,
)
from kagzi.core import limits
from kagzi.core.records import NamespaceRecord, Payload, Served, WorkerRecord
from kagzi.core.run.commands import StartRequest
from kagzi.core.workflow_types.queues import TypeLimits
from kagzi.core.workflow_types.schemas import TypeSchemas
from kagzi.engine import Engine

STEPS = 8  # of a run, while these tests run
SERVER_PAYLOAD_BYTES = 100_000  # what the server accepts is less than what the SDK lets through
LONG = "n" * 300
LARGE, TOO_LARGE = "x" * (SERVER_PAYLOAD_BYTES + 1), "x" * (limits.PAYLOAD_BYTES + 1)
never = Signal("never", str)
may_end_events: dict[str, asyncio.Event] = {}


def may_end(namespace: str) -> asyncio.Event:
    return may_end_events.setdefault(namespace, asyncio.Event())


@workflow
async def small(ctx: Context, input: str) -> str:
    """Runs until it may end, if it is told to."""
    namespace = ctx.namespace

    async def hold() -> None:
        if input == "hold":
            await may_end(namespace).wait()

    await ctx.step("hold").run(hold)
    return "small"


@workflow("typed")
async def typed(ctx: Context, input: Any) -> str:
    return "typed"


async def nothing(item: Any = None) -> None: ...


async def large() -> str:
    return LARGE


async def fill(ctx: Context, leave: int = 0) -> None:
    for _ in range(STEPS - 1 - leave):
        await ctx.step("fill").run(nothing)


# --- what a refusal needs -------------------------------------------------------------------------------------------


class Arrangement(NamedTuple):
    """Makes the server refuse something, and lets it pass."""

    refuse: Callable[[Engine, str], Awaitable[object]]
    relax: Callable[[Engine, str], Awaitable[object]]


async def _hold(engine: Engine, namespace: str, **fields: Any) -> None:
    request = StartRequest(namespace=namespace, workflow_type="small", input=Payload(b'"hold"'), **fields)
    await engine.runs.start(request)


async def _let_runs_end(engine: Engine, namespace: str) -> None:
    may_end(namespace).set()


def _full(**limited: Any) -> Arrangement:
    async def refuse(engine: Engine, namespace: str) -> None:
        await _hold(engine, namespace, concurrency_key="ada")
        await engine.queues.update(namespace, "small", TypeLimits(**limited, when_full="reject"), ())

    async def relax(engine: Engine, namespace: str) -> None:
        await engine.queues.update(namespace, "small", TypeLimits(), ())
        await _let_runs_end(engine, namespace)

    return Arrangement(refuse, relax)


async def _limit_namespace(engine: Engine, namespace: str, limit: int | None) -> None:
    await engine.namespaces.update(NamespaceRecord(namespace=namespace, open_runs_limit=limit), ("open_runs_limit",))


async def _fill_namespace(engine: Engine, namespace: str) -> None:
    await _hold(engine, namespace)
    await _limit_namespace(engine, namespace, 2)


async def _empty_namespace(engine: Engine, namespace: str) -> None:
    await _limit_namespace(engine, namespace, None)
    await _let_runs_end(engine, namespace)


def _deprecated(workflow_type: str, version: str) -> Arrangement:
    return Arrangement(
        lambda engine, namespace: engine.versions.deprecate(namespace, workflow_type, version, undo=False),
        lambda engine, namespace: engine.versions.deprecate(namespace, workflow_type, version, undo=True),
    )


async def _take_id(engine: Engine, namespace: str) -> None:
    await _hold(engine, namespace, workflow_id="taken")


async def _register_schema(engine: Engine, namespace: str) -> None:
    served = Served("typed", "1")
    schemas = {served: TypeSchemas(input_schema='{"type": "integer"}')}
    worker = WorkerRecord(worker_id="other", namespace=namespace, served=(served,), max_concurrent=1)
    await engine.workers.register(worker, schemas)


TYPE_FULL = _full(max_running=1)
KEY_FULL = _full(max_running_per_key=1)
NAMESPACE_FULL = Arrangement(_fill_namespace, _empty_namespace)
TAKEN = Arrangement(_take_id, _let_runs_end)
MISFIT = Arrangement(_register_schema, _let_runs_end)


# --- the table ------------------------------------------------------------------------------------------------------

Attempt = Callable[[Context], Awaitable[object]]


class Cell(NamedTuple):
    """`recorded`: the failed step that holds the refusal; empty if the SDK refuses by the arguments or the number of
    steps alone, the same in every replay."""

    call: str
    refusal: str
    error: type[Exception]
    attempt: Attempt
    recorded: str = ""
    arrangement: Arrangement | None = None

    @property
    def name(self) -> str:
        return f"{self.call}: {self.refusal}"


def _children(refusal: str, error: type[Exception], arranged: Arrangement | None = None, **options: Any) -> list[Cell]:
    """The server refuses the child, alone and in a branch."""

    def attempts(ctx: Context) -> dict[str, Callable[[], Awaitable[object]]]:
        value = options.get("input", "x")
        options_of_child = {name: option for name, option in options.items() if name not in ("input", "workflow")}
        flow = options.get("workflow", small)
        return {
            "child": lambda: ctx.child(flow, value, **options_of_child),
            "start_child": lambda: ctx.start_child(flow, value, **options_of_child),
            "parallel": lambda: ctx.parallel(
                ctx.child(flow, value, **options_of_child), ctx.step("beside").run(nothing)
            ),
            "race": lambda: ctx.race(child=ctx.child(flow, value, **options_of_child), signal=ctx.wait_for(never)),
        }

    name = options.get("workflow", small).name
    return [
        Cell(call, refusal, error, lambda ctx, call=call: attempts(ctx)[call](), name, arranged)
        for call in ("child", "start_child", "parallel", "race")
    ]


def _local(refusal: str, error: type[Exception], **attempts: Attempt) -> list[Cell]:
    return [Cell(call, refusal, error, attempt) for call, attempt in attempts.items()]


def _both(refusal: str, error: type[Exception], **options: Any) -> list[Cell]:
    """The SDK refuses the child at the call."""
    options_of_child = {name: option for name, option in options.items() if name not in ("input", "workflow")}
    flow, value = options.get("workflow", small), options.get("input", "x")
    return _local(
        refusal,
        error,
        child=lambda ctx: ctx.child(flow, value, **options_of_child),
        start_child=lambda ctx: ctx.start_child(flow, value, **options_of_child),
    )


async def _after(ctx: Context, call: Callable[[], Awaitable[object]]) -> None:
    await fill(ctx)
    await call()


async def _now(call: Callable[[], object]) -> None:
    call()


TOMORROW = datetime(2100, 1, 1, tzinfo=UTC)
CELLS: list[Cell] = [
    *_children("type full", ResourceExhausted, TYPE_FULL),
    *_children("key full", ResourceExhausted, KEY_FULL, concurrency_key="ada"),
    *_children("namespace full", ResourceExhausted, NAMESPACE_FULL),
    *_children("version deprecated", PreconditionFailed, _deprecated("small", "1"), version=1),
    Cell(
        "continue_as_new",
        "version deprecated",
        PreconditionFailed,
        lambda ctx: _now(lambda: ctx.continue_as_new("", version=2)),
        "continue_as_new",
        _deprecated("saga", "2"),
    ),
    *_children("id taken", AlreadyExists, TAKEN, id="taken"),
    *_children("id too long", InvalidArgument, id=LONG),
    *_children("id not valid", InvalidArgument, id="a\nb"),
    *_both("text not valid", InvalidArgument, id="half \ud800 a character"),
    *_children("concurrency key too long", InvalidArgument, concurrency_key=LONG),
    *_children("version too long", InvalidArgument, version=LONG),
    *_local(
        "version too long",
        InvalidArgument,
        continue_as_new=lambda ctx: _now(lambda: ctx.continue_as_new("", version=LONG)),
    ),
    *_both("priority out of range", InvalidArgument, priority=101),
    *_both("too many labels", InvalidArgument, labels={str(n): "" for n in range(limits.LABELS + 1)}),
    *_children("label too long", InvalidArgument, labels={"a": LONG}),
    *_children("input too large for the server", InvalidArgument, input=LARGE),
    Cell(
        "continue_as_new",
        "input too large for the server",
        InvalidArgument,
        lambda ctx: _now(lambda: ctx.continue_as_new(LARGE)),
        "continue_as_new",
    ),
    *_both("input too large", ResourceExhausted, input=TOO_LARGE),
    *_local(
        "input too large", ResourceExhausted, continue_as_new=lambda ctx: _now(lambda: ctx.continue_as_new(TOO_LARGE))
    ),
    *_children("input does not fit", InvalidArgument, MISFIT, workflow=typed, input="x", version=1),
    *_children("deadline passed", InvalidArgument, timeout=timedelta(0)),
    *_both("option unknown", InvalidArgument, on_close="stay"),
    *_both("not a workflow", InvalidArgument, workflow=nothing),
    *_local(
        "name not valid",
        InvalidArgument,
        step=lambda ctx: ctx.step("a/b").run(nothing),
        sleep=lambda ctx: ctx.sleep("", "1s"),
        sleep_until=lambda ctx: ctx.sleep_until("a[b", TOMORROW),
        map=lambda ctx: ctx.map("$a", [1], nothing),
        changed=lambda ctx: _now(lambda: ctx.changed("a#b")),
    ),
    *_local(
        "name too long",
        InvalidArgument,
        step=lambda ctx: ctx.step(LONG).run(nothing),
        sleep=lambda ctx: ctx.sleep(LONG, "1s"),
        sleep_until=lambda ctx: ctx.sleep_until(LONG, TOMORROW),
        wait_for=lambda ctx: ctx.wait_for(Signal(LONG, str)),
        map=lambda ctx: ctx.map(LONG, [1], nothing),
        race=lambda ctx: ctx.race(**{LONG: asyncio.get_running_loop().create_future()}),
        changed=lambda ctx: _now(lambda: ctx.changed(LONG)),
    ),
    *_local(
        "step id too long",
        InvalidArgument,
        step=lambda ctx: ctx.step("a", key=LONG).run(nothing),
        sleep=lambda ctx: _in_branch(ctx, lambda: ctx.sleep("n" * 250, "1s")),
        sleep_until=lambda ctx: _in_branch(ctx, lambda: ctx.sleep_until("n" * 250, TOMORROW)),
        wait_for=lambda ctx: _in_branch(ctx, lambda: ctx.wait_for(Signal("n" * 250, str))),
        map=lambda ctx: ctx.map("a", [1], nothing, key=lambda _: LONG),
        changed=lambda ctx: _now(lambda: ctx.changed("n" * 250)),
        parallel=lambda ctx: ctx.parallel(_long_step(ctx), nothing()),
        race=lambda ctx: ctx.race(_long_step(ctx), ctx.wait_for(never)),
    ),
    *_local(
        "key not valid",
        InvalidArgument,
        step=lambda ctx: ctx.step("a", key="b\nc").run(nothing),
        map=lambda ctx: ctx.map("a", [1], nothing, key=lambda _: "b\x00c"),
    ),
    *_local(
        "duration out of range",
        InvalidArgument,
        step=lambda ctx: ctx.step("a", timeout="-1s").run(nothing),
        sleep=lambda ctx: ctx.sleep("a", timedelta(days=80_000)),
        wait_for=lambda ctx: ctx.wait_for(never, timeout="-1s"),
        map=lambda ctx: ctx.map("a", [1], nothing, timeout=timedelta(days=80_000)),
        child=lambda ctx: ctx.child(small, "x", timeout="soon"),
        start_child=lambda ctx: ctx.start_child(small, "x", timeout="-1s"),
    ),
    *_local(
        "time not valid",
        InvalidArgument,
        sleep_until=lambda ctx: ctx.sleep_until("a", datetime(2100, 1, 1)),
    ),
    *_local(
        "retry policy not valid",
        InvalidArgument,
        step=lambda ctx: ctx.step("a", retry=Retry(non_retryable_errors=(LONG,))).run(nothing),
        map=lambda ctx: ctx.map("a", [1], nothing, retry=Retry(initial_interval=timedelta(days=80_000))),
    ),
    *_local(
        "option not valid",
        InvalidArgument,
        parallel=lambda ctx: ctx.parallel([], limit=0),
        map=lambda ctx: ctx.map("a", [1], nothing, limit=-1),
        race=lambda ctx: ctx.race(),
        wait_for=lambda ctx: ctx.wait_for("never"),  # type: ignore[arg-type]
    ),
    *_local(
        "steps per run",
        ResourceExhausted,
        step=lambda ctx: _after(ctx, lambda: ctx.step("more").run(nothing)),
        sleep=lambda ctx: _after(ctx, lambda: ctx.sleep("more", "1ms")),
        sleep_until=lambda ctx: _after(ctx, lambda: ctx.sleep_until("more", datetime(2020, 1, 1, tzinfo=UTC))),
        wait_for=lambda ctx: _after(ctx, lambda: ctx.wait_for(never)),
        child=lambda ctx: _after(ctx, lambda: ctx.child(small, "x")),
        start_child=lambda ctx: _after(ctx, lambda: ctx.start_child(small, "x")),
        parallel=lambda ctx: _after(ctx, lambda: ctx.parallel(ctx.step("more").run(nothing), ctx.wait_for(never))),
        map=lambda ctx: ctx.map("more", list(range(STEPS)), nothing),
        race=lambda ctx: _after(ctx, lambda: ctx.race(ctx.step("more").run(nothing), ctx.wait_for(never))),
    ),
    Cell("step", "output too large for the server", StepError, lambda ctx: ctx.step("big").run(large), "big"),
    Cell("step", "output too large", StepError, lambda ctx: ctx.step("big").run(lambda: TOO_LARGE), "big"),
    Cell("map", "output too large for the server", StepError, lambda ctx: ctx.map("big", [1], _large_for), "big[0]"),
    *_local(
        "text too long",
        InvalidArgument,
        set_status=lambda ctx: _now(lambda: ctx.set_status("x" * (limits.STATUS_TEXT_BYTES + 1))),
    ),
    *_local("text not valid", InvalidArgument, set_status=lambda ctx: _now(lambda: ctx.set_status("a\x1bb"))),
    *_local(
        "progress out of range", InvalidArgument, set_status=lambda ctx: _now(lambda: ctx.set_status("a", progress=2))
    ),
    *_local(
        "state too large", InvalidArgument, set_state=lambda ctx: _now(lambda: ctx.set_state("x" * limits.STATE_BYTES))
    ),
    *_local("no JSON form", InvalidArgument, set_state=lambda ctx: _now(lambda: ctx.set_state(object()))),
]


async def _large_for(item: int) -> str:
    return LARGE


async def _long_step(ctx: Context) -> None:
    await ctx.step("n" * 250).run(nothing)


async def _in_branch(ctx: Context, call: Callable[[], Awaitable[object]]) -> None:
    async def branch() -> None:
        await call()

    await ctx.parallel(branch(), nothing())


BY_NAME = {cell.name: cell for cell in CELLS}

# --- what is not in the table ---------------------------------------------------------------------------------------

NOT_CALLS = {
    "cleanup": "opens a scope, sends nothing",
    "log": "sends nothing that can be refused",
    "now": "reads what is recorded",
    "random": "is computed",
    "uuid": "is computed",
    **dict.fromkeys(
        ("attempt", "context", "is_replaying", "labels", "namespace", "run_id", "scheduled_at", "version",
         "workflow_id", "workflow_type"),
        "a fact about the run",
    ),
}  # fmt: skip
"""Attributes of a Context for which nobody decides anything."""

KINDS = {
    "child_conflict": ("id taken",),
    "foreign_request": (),  # an id that the server makes: see tests/store/conformance/test_one_outcome.py
    "namespace_full": ("namespace full",),
    "reserved_step": ("name not valid",),
    "state_too_large": ("state too large",),
    "status_too_long": ("text too long",),
    "too_many_steps": ("steps per run",),
    "type_full": ("type full", "key full"),
    "unstorable": ("text not valid",),
}
"""Refusals of core, and where the table has them."""

NOT_RAISED = {
    "being_cancelled": "is raised as CancelledError, by the request that the run has recorded",
    "other_kind": "the code does not fit the history: the run is paused",
    "first_attempt_is_one": "the same, or a bug",
    "never_begun": "the same, or a bug",
    "not_current": "the same, or a bug",
    "lost_race": "the branch has been cancelled",
    "not_cancelled": "no call ends a run as cancelled",
    "nothing_to_wait_for": "no call parks a run",
}
"""Refusals of a worker's operations that no call raises, and why."""

NOT_OF_A_WORKER = {
    "namespace_disabled", "namespace_gone", "no_result_before", "no_step", "not_failed", "request_id_of_type",
    "schedule_exists", "starts_too_fast", "takes_no_signals", "too_many_schedules", "too_many_sessions",
    "too_many_signals", "too_much_stored", "workflow_id_active", "workflow_id_active_again", "workflow_id_of_type",
}  # fmt: skip
"""Refusals of requests of clients and operators."""

FIELDS = {
    "StartChild": {
        "step_id": "name too long",
        "name": "name too long",
        "parent_step_id": "step id too long",
        "parallel_group_id": "step id too long",
        "cleanup": "",
        "start": "",
        "refusal": "",
        "on_close": "option unknown",
        "attach": "",
    },
    "StartRun": {
        "workflow_type": "not a workflow",
        "workflow_id": "id too long",
        "version": "version too long",
        "concurrency_key": "concurrency key too long",
        "labels": "label too long",
        "priority": "priority out of range",
        "input": "input too large for the server",
        "deadline_at": "deadline passed",
        "context": "",  # of the parent, which was accepted
        "retry": "",
        "run": "",
        "request_id": "",
        "start_at": "",
        "on_conflict": "",
        "schedule_id": "",
        "blocked_by": "",
        "assignment": "",
        "signal": "",
        "task_queue": "",
    },
    "BeginStep": {
        "step_id": "step id too long",
        "name": "name too long",
        "retry": "retry policy not valid",
        "timeout_ms": "duration out of range",
        "parent_step_id": "step id too long",
        "parallel_group_id": "step id too long",
        "attempt": "",
        "input": "",  # shortened rather than refused
        "cleanup": "",
        "once": "",
    },
    "CompleteStep": {"step_id": "", "attempt": "", "output": "output too large for the server"},
    "BeginSleep": {
        "step_id": "step id too long",
        "name": "name too long",
        "duration_us": "duration out of range",
        "until": "time not valid",
        "parent_step_id": "step id too long",
        "parallel_group_id": "step id too long",
        "cleanup": "",
    },
    "WaitSignal": {
        "step_id": "step id too long",
        "signal_name": "name too long",
        "timeout_us": "duration out of range",
        "input": "",  # a schema that is too large is left out
        "parent_step_id": "step id too long",
        "parallel_group_id": "step id too long",
        "cleanup": "",
    },
    "DecideRace": {
        "step_id": "step id too long",
        "name": "",
        "winner": "name too long",
        "losers": "steps per run",
        "parent_step_id": "step id too long",
    },
    "RecordPatch": {"step_id": "step id too long", "name": "name not valid"},
    "SetStatus": {"text": "text not valid", "progress": "progress out of range"},
    "SetState": {"state": "state too large"},
    "ContinueAsNew": {
        "input": "input too large for the server",
        "version": "version too long",
        "new_run_id": "",
        "context": "",
        "open_waits": "",
    },
}
"""Fields of the commands that calls send, and which refusal is about each; empty: the call cannot make it wrong."""


def markdown() -> str:
    """The table, for people: R a refusal that is recorded, x one that the SDK raises from the arguments alone."""
    calls = list(dict.fromkeys(cell.call for cell in CELLS))
    refusals = list(dict.fromkeys(cell.refusal for cell in CELLS))
    entries = {(cell.call, cell.refusal): "R" if cell.recorded else "x" for cell in CELLS}
    lines = ["| refusal | " + " | ".join(calls) + " |", "|---" * (len(calls) + 1) + "|"]
    lines += [
        f"| {refusal} | " + " | ".join(entries.get((call, refusal), "") for call in calls) + " |"
        for refusal in refusals
    ]
    return "\n".join(lines)
