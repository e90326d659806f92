"""The SDK plan, section by section: its headings, its code in Python, run against one server per store.

Where a later design decided otherwise, a comment that begins with "Otherwise" says what and why. Durations are shorter
than in the plan, so that nobody waits; names are the plan's.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

import kagzi
from kagzi import (
    Context,
    InvalidArgument,
    Kagzi,
    Retry,
    RunError,
    RunStatus,
    Signal,
    StepError,
    Worker,
    current_step,
    workflow,
)
from kagzi.v1 import worker_pb2, worker_pb2_grpc, workflow_pb2, workflow_pb2_grpc
from tests.support.kagzi_process import running
from tests.support.postgres import Databases

WAIT = "60s"
TIMEOUT_S = 60.0

pytestmark = pytest.mark.xdist_group("seed-sdk")  # they share the servers


@pytest.fixture(scope="module", params=("sqlite", "postgres"))
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server per store, for the whole document."""
    directory: Path = tmp_path_factory.mktemp("sdk")
    with ExitStack() as stack:
        database = f"sqlite:///{directory / 'server.db'}"
        if request.param == "postgres":
            databases: Databases = request.getfixturevalue("postgres")
            database = stack.enter_context(databases.database())
        ports = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        server = stack.enter_context(running("server", "--db", database, *ports, cwd=directory))
        yield server.says(r"grpc=(\S+)")[1]


@pytest.fixture
async def client(address: str) -> AsyncIterator[Kagzi]:
    async with Kagzi.connect(f"http://{address}") as connected:
        yield connected


# --- 1. Design Decisions ----------------------------------------------------------------------------------------------
# The table's rows are the subjects of the sections below. Otherwise: limits per key, throttling and versions, deferred
# there, are built (docs/how-to/limits.md, docs/how-to/versions.md).


# --- 2. Worker API ----------------------------------------------------------------------------------------------------


async def process_order(ctx: Context, order: int) -> str:
    return f"order {order} in {ctx.namespace}"


async def send_notification(ctx: Context, to: str) -> str:
    return f"told {to}"


async def test_2_worker_api(address: str, client: Kagzi) -> None:
    worker = await (
        Worker(f"http://{address}")
        .namespace("production")
        .max_concurrent(50)
        .retries(3)
        .workflows([
            ("process-order", process_order),
            ("send-notification", send_notification),
        ])
        .build()
    )  # fmt: skip
    running_worker = asyncio.create_task(worker.run())
    run = await client.start("process-order").namespace("production").input(7)
    assert await run.result(timeout=WAIT) == "order 7 in production"
    run = await client.start("send-notification").namespace("production").input("ada")
    assert await run.result(timeout=WAIT) == "told ada"
    running_worker.cancel()
    await asyncio.gather(running_worker, return_exceptions=True)


def test_2_the_other_setters(address: str) -> None:
    worker = Worker(address).hostname("worker-1").version("1.0.0").label("zone", "a").build_id("abc123")
    assert (worker.options.hostname, worker.options.build_id) == ("worker-1", "abc123")
    assert worker.options.labels == {"zone": "a", "version": "1.0.0"}
    # Otherwise: `retries(n)` is n tries after the first, as its comment says ("retry count").
    assert worker.retries(3).options.retry == Retry.attempts(4)
    assert worker.retry(Retry.exponential(3)).options.retry == Retry.attempts(3)


async def test_2_every_setter_returns_a_new_worker(address: str) -> None:
    plain = Worker(address)
    assert plain.workflows([("process-order", process_order)]).registered
    assert not plain.registered


async def test_2_at_least_one_workflow_must_be_registered(address: str) -> None:
    with pytest.raises(InvalidArgument, match="has no workflows"):
        await Worker(address).build()
    with pytest.raises(InvalidArgument, match="has no workflows"):
        await Worker(address).run()
    with pytest.raises(TypeError, match="run"):
        await Worker(address)


# --- 3. Retry API -----------------------------------------------------------------------------------------------------


def test_3_retry_api() -> None:
    # Simple - just attempts with defaults
    simple = Retry.attempts(3)
    assert (simple.max_attempts, simple.initial_interval, simple.max_interval) == (
        3,
        timedelta(seconds=1),
        timedelta(seconds=60),
    )

    # Exponential backoff (most common)
    policy = Retry.exponential(5).initial("1s").max("60s").backoff(2.0).non_retryable(["InvalidArgument", "NotFound"])
    assert policy.to_policy().maximum_attempts == 5
    assert policy.to_policy().initial_interval_ms == 1_000
    assert policy.to_policy().maximum_interval_ms == 60_000
    assert policy.to_policy().non_retryable_errors == ("InvalidArgument", "NotFound")

    # Linear (fixed interval)
    fixed = Retry.linear(5, "2s")
    assert [fixed.delay_after(attempt) for attempt in (1, 4)] == [timedelta(seconds=2)] * 2

    # Presets
    # Otherwise: attempts count executions, so no retries are 1 attempt, not 0, and there is no number for forever.
    assert Retry.none().max_attempts == 1
    assert Retry.forever().max_attempts is None
    with pytest.raises(InvalidArgument, match="duration"):
        Retry.linear(5, "soon")


async def test_3_non_retryable_errors_are_matched_by_code_and_by_class(address: str, client: Kagzi) -> None:
    tries: list[str] = []

    async def refused(name: str) -> None:
        tries.append(name)
        raise kagzi.NotFound(name) if name == "NotFound" else ConnectionError(name)

    @workflow
    async def refusals(ctx: Context) -> list[int]:
        attempts: list[int] = []
        for name, listed in (("NotFound", "NOT_FOUND"), ("ConnectionError", "ConnectionError"), ("else", "NotFound")):
            policy = Retry.exponential(2).initial("1ms").non_retryable([listed])
            try:
                await ctx.step(name).retry(policy).run(refused, name)
            except StepError as error:
                attempts.append(error.attempts)
        return attempts

    async with Worker(address).workflows([refusals]):
        assert await client.run(refusals, timeout=WAIT) == [1, 1, 2]
    assert tries == ["NotFound", "ConnectionError", "else", "else"]


# --- 4. Step API ------------------------------------------------------------------------------------------------------


@dataclass
class User:
    id: int
    email: str


async def fetch_user(user_id: int) -> User:
    return User(user_id, f"user-{user_id}@example.com")


def transform(user: User) -> str:
    return user.email.upper()


async def call_api(request: str) -> str:
    if current_step().attempt == 1:
        raise ConnectionError("busy")
    return f"{request} at attempt {current_step().attempt}"


@workflow
async def step_api(ctx: Context, user_id: int) -> list[Any]:
    # Single builder pattern - extensible without API breakage
    user = await ctx.step("fetch-user").run(lambda: fetch_user(user_id))

    result = await ctx.step("transform-data").run(lambda: transform(user))

    response = (
        await ctx.step("call-external-api")
        .retry(Retry.exponential(10).initial("5ms"))
        .timeout("30s")
        .run(lambda: call_api("request"))
    )
    await ctx.sleep("replayed", "1ms")
    return [user.email, result, response]


async def test_4_step_api(address: str, client: Kagzi) -> None:
    async with Worker(address).workflows([step_api]):
        run = await client.start(step_api, 3)
        email, result, response = await run.result(timeout=WAIT)
    assert (email, result) == ("user-3@example.com", "USER-3@EXAMPLE.COM")
    assert response == "request at attempt 2"
    steps = await run.steps()
    assert [(step.name, step.attempts) for step in steps] == [
        ("fetch-user", 1),
        ("transform-data", 1),
        ("call-external-api", 2),
        ("replayed", 1),
    ]


async def test_4_why_closure_capture_works(address: str, client: Kagzi) -> None:
    """On replay, completed steps return their output without executing again; what closures capture follows from
    that."""
    proceed = Signal("go", bool)
    entered: list[int] = []
    charged: list[str] = []

    def charge_card(user: User) -> str:
        charged.append(user.email)
        return user.email

    @workflow
    async def order_workflow(ctx: Context, user_id: int) -> str:
        entered.append(user_id)
        # `input` comes from workflow input (serialized at start)
        user = await ctx.step("fetch-user").run(lambda: fetch_user(user_id))
        # `user` comes from previous step output (serialized after step completed)
        charge = await ctx.step("charge-card").run(lambda: charge_card(user))
        await ctx.wait_for(proceed)
        return charge

    async with Worker(address).workflows([order_workflow]):
        run = await client.start(order_workflow, 5)
        async with asyncio.timeout(TIMEOUT_S):
            while await run.status() is not RunStatus.SLEEPING:
                pass  # each look is a round trip
    await run.signal(proceed, True)
    async with Worker(address).workflows([order_workflow]):  # another one: it knows nothing but the history
        assert await run.result(timeout=WAIT) == "user-5@example.com"
    assert entered == [5, 5]
    assert charged == ["user-5@example.com"]


# --- 5. Sleep API -----------------------------------------------------------------------------------------------------


async def test_5_sleep_api(address: str, client: Kagzi) -> None:
    @workflow
    async def sleepy(ctx: Context, deadline_timestamp: datetime) -> float:
        began = ctx.now()
        await ctx.sleep("wait-for-cooldown", "30ms")
        await ctx.sleep("retry-delay", "0s 30ms")
        await ctx.sleep("retry-delay", "30ms")  # names are for people: they need not be unique

        # Sleep until specific time
        await ctx.sleep_until("deadline", deadline_timestamp)
        await ctx.sleep_until("passed", datetime(2020, 1, 1, tzinfo=UTC))  # already past, no sleep needed
        return (ctx.now() - began).total_seconds()

    async with Worker(address).workflows([sleepy]):
        run = await client.start(sleepy, datetime.now(UTC) + timedelta(milliseconds=50))
        assert await run.result(timeout=WAIT) >= 0.09
    names = [step.name for step in await run.steps()]
    assert names == ["wait-for-cooldown", "retry-delay", "retry-delay", "deadline", "passed"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((text, 30) for text in ("30s", "30sec", "30 seconds")),
        *((text, 300) for text in ("5m", "5min", "5 minutes")),
        *((text, 7_200) for text in ("2h", "2hr", "2 hours")),
        *((text, 86_400) for text in ("1d", "1 day", "1 days")),
        *((text, 604_800) for text in ("1w", "1 week")),
        ("2 weeks", 1_209_600),
        ("1h 30m", 5_400),
        ("1 day 12 hours", 129_600),
        ("5m 30s", 330),
    ],
)
def test_5_supported_duration_formats(text: str, seconds: int) -> None:
    assert Retry.linear(2, text).initial_interval == timedelta(seconds=seconds)


# --- 6. Client API ----------------------------------------------------------------------------------------------------


async def test_6_client_api(address: str) -> None:
    client = await Kagzi.connect(f"http://{address}")

    # Start a workflow
    run = (
        await client.start("process-order")
        .namespace("production")
        .input(123)
        .id("order-123")  # Optional idempotency key
    )
    assert run.id

    again = await client.start("process-order").namespace("production").input(123).id("order-123")
    assert (again.id, again.created) == (run.id, False)
    elsewhere = await client.start("process-order").namespace("staging").input(123).id("order-123")
    assert elsewhere.id != run.id, "namespaces are strictly apart"

    # Schedule a recurring workflow
    schedule = (
        await client.schedule("daily-report")
        .namespace("production")
        .workflow("generate-report")
        .cron("0 6 * * *")
        .input({"format": "pdf"})
        .catchup(7)
    )
    assert (schedule.id, schedule.workflow, schedule.cron_expr, schedule.max_catchup) == (
        "daily-report",
        "generate-report",
        "0 6 * * *",
        7,
    )

    # Query workflow status
    status = await client.get(run.id).namespace("production")
    assert status.status is RunStatus.PENDING
    with pytest.raises(kagzi.NotFound):
        await client.get(run.id)

    # Cancel a workflow
    await client.cancel(run.id).namespace("production")
    assert (await client.get(run.id).namespace("production")).status is RunStatus.CANCELLED
    with pytest.raises(RunError):
        await run.result(timeout=WAIT)
    await client.close()


# --- 7. Queue Model ---------------------------------------------------------------------------------------------------


async def test_7_queues_are_hidden(address: str, client: Kagzi) -> None:
    """Internally, task_queue = workflow_type; another one is ignored."""
    run = await client.start("queue-of-nobody", 1)
    async with grpc.aio.insecure_channel(address) as channel:
        workflows: Any = workflow_pb2_grpc.WorkflowServiceStub(channel)
        request = workflow_pb2.GetWorkflowRequest(run_id=run.id)
        notified = (await workflows.GetWorkflow(request, timeout=TIMEOUT_S)).workflow
        assert (notified.workflow_type, notified.task_queue) == ("queue-of-nobody", "queue-of-nobody")
        queued = await workflows.StartWorkflow(
            workflow_pb2.StartWorkflowRequest(workflow_type="queue-of-nobody", task_queue="orders"),
            timeout=TIMEOUT_S,
        )
        assert "task_queue has no effect" in queued.warning
    await run.cancel()
    await client.cancel(queued.run_id)


# --- 8. Concurrency Model ---------------------------------------------------------------------------------------------


async def test_8_max_concurrent_limits_the_worker(address: str, client: Kagzi) -> None:
    at_once: list[int] = []
    busy = 0

    async def work() -> None:
        nonlocal busy
        busy += 1
        at_once.append(busy)
        await asyncio.sleep(0.01)
        busy -= 1

    @workflow
    async def limited(ctx: Context) -> None:
        await ctx.step("work").run(work)

    async with Worker(address).max_concurrent(2).workflows([limited]):
        runs = await client.start_many(client.start(limited) for _ in range(6))
        await asyncio.gather(*(run.result(timeout=WAIT) for run in runs))
    assert len(at_once) == 6
    assert max(at_once) <= 2


# --- 9. Server Changes ------------------------------------------------------------------------------------------------


async def test_9_a_worker_registers_types_and_no_queue(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        workers: Any = worker_pb2_grpc.WorkerServiceStub(channel)
        workflows: Any = workflow_pb2_grpc.WorkflowServiceStub(channel)
        registered = await workers.Register(
            worker_pb2.RegisterRequest(workflow_types=["nine-a", "nine-b"]), timeout=TIMEOUT_S
        )
        for workflow_type in ("nine-a", "nine-b"):
            request = workflow_pb2.StartWorkflowRequest(workflow_type=workflow_type)
            await workflows.StartWorkflow(request, timeout=TIMEOUT_S)
        # Poll logic: namespace, queue and types. The queue always equals one of the types.
        polled = await workers.PollTask(
            worker_pb2.PollTaskRequest(
                worker_id=registered.worker_id, task_queue="nine-b", workflow_types=["nine-a", "nine-b"]
            ),
            timeout=TIMEOUT_S,
        )
        assert polled.workflow_type == "nine-b"


# --- 10. Removals -----------------------------------------------------------------------------------------------------


def test_10_removals() -> None:
    for owner, names in (
        (Worker, ("register", "task_queue", "queue_concurrency_limit", "workflow_type_concurrency")),
        (Context, ("run", "run_with_input", "run_with_input_with_retry", "sleep_counter")),
        (Kagzi, ("workflow",)),
        (kagzi, ("RetryPolicy", "WorkerBuilder", "KagziClient")),
    ):
        assert not [name for name in names if hasattr(owner, name)]


# --- 11. Dependencies, 12. File Changes -------------------------------------------------------------------------------
# Of the Rust workspace. Durations are parsed as humantime does: section 5.


# --- 13. Migration Guide ----------------------------------------------------------------------------------------------


async def test_13_migration_guide(address: str, client: Kagzi) -> None:
    async def do_work() -> str:
        return "worked"

    def work(input: int) -> int:
        return input + 1

    async def handler(ctx: Context, input: int) -> list[Any]:
        # Steps
        result = await ctx.step("step-name").run(do_work)
        other = await ctx.step("step").run(lambda: work(input))
        # Sleep
        await ctx.sleep("wait-30s", "30ms")
        return [result, other]

    # Worker
    worker = Worker(f"http://{address}").namespace("prod").max_concurrent(50).workflows([("process-order", handler)])
    async with worker:
        # Client
        run = await client.start("process-order").namespace("prod").input(1)
        assert await run.result(timeout=WAIT) == ["worked", 2]

    # Retry Policy
    assert Retry.exponential(3).initial("1s").max("60s") == Retry.attempts(3)


# --- 14. Implementation Order, 15. Future Considerations --------------------------------------------------------------
# Otherwise: of what was deferred, limits per key, throttling, typed handles, step timeouts and versions are built.


# --- Appendix: Complete Example ---------------------------------------------------------------------------------------


@dataclass
class OrderInput:
    user_id: int
    items: list[str]
    total: float


@dataclass
class OrderOutput:
    order_id: str
    status: str


@dataclass
class Payment:
    transaction_id: str


async def charge_card(user: User, total: float) -> Payment:
    return Payment(f"{user.id}-{total}")


async def create_shipment(items: list[str]) -> str:
    return "+".join(items)


async def send_confirmation(email: str, shipment: str) -> None:
    assert (email, shipment) == ("user-123@example.com", "item-1+item-2")


async def complete_example(ctx: Context, input: OrderInput) -> OrderOutput:
    # Fetch user with default retry
    user = await ctx.step("fetch-user").run(lambda: fetch_user(input.user_id))

    # Charge card with custom retry and timeout
    payment = (
        await ctx.step("charge-card")
        .retry(Retry.exponential(5).initial("1s").max("30s"))
        .timeout("2m")
        .run(lambda: charge_card(user, input.total))
    )

    # Wait for payment confirmation
    await ctx.sleep("wait-confirmation", "30ms")

    # Create shipment
    shipment = await ctx.step("create-shipment").run(lambda: create_shipment(input.items))

    # Send confirmation email (no retry on failure)
    await ctx.step("send-email").retry(Retry.none()).run(lambda: send_confirmation(user.email, shipment))

    return OrderOutput(order_id=payment.transaction_id, status="completed")


async def test_appendix_complete_example(address: str) -> None:
    # Start worker
    worker = (
        Worker(f"http://{address}")
        .namespace("shop")
        .max_concurrent(50)
        .retries(3)
        .workflows([("process-order", complete_example)])
    )

    # In another process: trigger workflow
    client = await Kagzi.connect(f"http://{address}")
    run = (
        await client.start("process-order")
        .namespace("shop")
        .input(OrderInput(user_id=123, items=["item-1", "item-2"], total=99.99))
        .id("order-123")
    )

    # Run worker (blocks)
    serving = asyncio.create_task(worker.run())
    assert await run.result(timeout=WAIT) == {"order_id": "123-99.99", "status": "completed"}
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await client.close()
