"""What workers register about their types is kept once, with what was registered before it."""

from kagzi.core.error_details import ErrorCode
from kagzi.core.records import Payload, Served, WorkerRecord
from kagzi.core.run.commands import SendSignal, SignalReplacement
from kagzi.core.run.outcomes import Refused
from kagzi.core.run.refusals import refused as refusal
from kagzi.core.workers import Registration
from kagzi.core.workflow_types.schemas import RegisteredSchemas, TypeSchemas, digest_of, write_document

from .verbs import StoreHarness

HELLO = Served("hello", "1")
OLD = TypeSchemas(description="Says hello.", input_schema='{"type":"integer"}')
NEW = TypeSchemas(input_schema='{"type":"string"}', signal_schemas={"go": '{"type":"null"}'})


def digest(schemas: TypeSchemas) -> str:
    return digest_of(write_document(schemas))


async def register(
    harness: StoreHarness, schemas: TypeSchemas | None, worker_id: str = "worker-1", namespace: str = "default"
) -> bool:
    """Whether something was said that is new."""
    record = WorkerRecord(worker_id=worker_id, namespace=namespace, served=(HELLO,), max_concurrent=1)
    registration = await harness.store.register_worker(record, harness.now, {} if schemas is None else {HELLO: schemas})
    assert isinstance(registration, Registration)
    return registration.new_versions


async def registered(harness: StoreHarness, namespace: str = "default") -> RegisteredSchemas:
    (mark,) = await harness.store.versions_of(namespace, ("hello",))
    return mark.schemas


async def test_the_latest_and_the_one_before_are_known(harness: StoreHarness) -> None:
    await register(harness, None)
    assert await registered(harness) == RegisteredSchemas()
    first_at = harness.now
    assert await register(harness, OLD)
    assert await registered(harness) == RegisteredSchemas(digest(OLD), "", first_at)
    harness.clock.advance(s=5)
    assert await register(harness, NEW, "worker-2")
    assert await registered(harness) == RegisteredSchemas(digest(NEW), digest(OLD), harness.now)
    documents = await harness.store.get_schemas("default", [digest(OLD), digest(NEW), "unknown"])
    assert documents == {digest(OLD): OLD, digest(NEW): NEW}
    assert await harness.store.get_schemas("elsewhere", [digest(OLD)]) == {}


async def test_what_is_registered_already_is_not_written_again(harness: StoreHarness) -> None:
    await register(harness, OLD)
    before = await registered(harness)
    harness.clock.advance(s=5)
    assert not await register(harness, OLD)
    assert not await register(harness, OLD, "worker-2")
    assert await registered(harness) == before


async def test_a_worker_that_says_nothing_makes_the_schemas_unknown(harness: StoreHarness) -> None:
    await register(harness, OLD)
    assert await register(harness, None, "worker-2")
    assert (await registered(harness)).latest == digest(TypeSchemas())


async def test_schemas_that_no_version_has_any_more_are_forgotten(harness: StoreHarness) -> None:
    third = TypeSchemas(description="another")
    for schemas in (OLD, NEW, third):
        await register(harness, schemas)
    await harness.store.forget_workers(harness.now, 100)
    digests = [digest(schemas) for schemas in (OLD, NEW, third)]
    assert len(await harness.store.get_schemas("default", digests)) == 3  # added a moment ago
    harness.clock.advance(s=5)
    await harness.store.forget_workers(harness.now, 100)
    assert set(await harness.store.get_schemas("default", digests)) == {digest(NEW), digest(third)}


async def test_a_signal_is_checked_before_anything_is_changed_and_repeats_are_not(harness: StoreHarness) -> None:
    run = await harness.running(workflow_id="order-1")
    checked: list[tuple[str, str]] = []

    def check(workflow_type: str, version: str) -> Refused | None:
        checked.append((workflow_type, version))
        return refusal(ErrorCode.INVALID_ARGUMENT, "does not fit")

    signal = SendSignal(name="go", payload=Payload(b"1"), request_id="r1")
    answer, _ = await harness.store.signal_run(
        "default", run_id=run.run.run_id, signal=signal, now=harness.now, check=check
    )
    assert isinstance(answer, Refused)
    assert checked == [("hello", "1")]
    sent, _ = await harness.store.signal_run("default", workflow_id="order-1", signal=signal, now=harness.now)
    assert sent is not None
    assert not isinstance(sent, Refused)
    repeated, _ = await harness.store.signal_run(
        "default", run_id=run.run.run_id, signal=signal, now=harness.now, check=check
    )
    assert repeated == sent
    change = SignalReplacement(name="go", payload=Payload(b"2"), request_id="r2")
    replaced, _ = await harness.store.replace_signal(
        "default", run_id=run.run.run_id, change=change, now=harness.now, check=check
    )
    assert isinstance(replaced, Refused)
    assert len(checked) == 2
