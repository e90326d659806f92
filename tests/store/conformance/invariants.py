"""What holds at every moment, whatever happened: checked from outside, through the reading verbs only."""

from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import RunFilter, RunRecord, StepRecord
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.core.times import Timestamp
from kagzi.store.protocol import Store

_PAGE = 1_000
OPEN_STEP = (StepStatus.PENDING, StepStatus.RUNNING)


async def check_invariants(
    store: Store, namespace: str = "default", *, created_after: Timestamp | None = None
) -> list[RunRecord]:
    """Every run of the namespace is in a shape that its state allows. Returns them, newest first."""
    runs = await _all_runs(store, namespace, RunFilter(created_after=created_after))
    open_ids = [run.workflow_id for run in runs if not run.status.ended]
    assert len(open_ids) == len(set(open_ids)), "two open runs share a workflow_id"
    for listed in runs:
        run = await store.get_run(namespace, run_id=listed.run.run_id)
        assert run is not None
        check_run(run)
        rows = await store.list_steps(run.run, name=None, after_begun_seq=0, limit=1_000, payloads=True)
        assert rows is not None
        steps = list(rows.rows)
        check_steps(run, steps)
        check_counts(run, steps)
        await check_unread(store, run)
        counts = (run.awaits_signal, run.retrying_steps, run.unread_signals)
        assert (listed.awaits_signal, listed.retrying_steps, listed.unread_signals) == counts, run
        await check_waits(store, run, steps)
    return runs


async def _all_runs(store: Store, namespace: str, where: RunFilter) -> list[RunRecord]:
    runs: list[RunRecord] = []
    cursor: Cursor | None = None
    while True:
        page = (await store.list_runs(namespace, where, cursor, _PAGE)).rows
        runs += page
        if len(page) < _PAGE:
            return runs
        cursor = Cursor(page[-1].created_at, page[-1].run.run_id)


def check_run(run: RunRecord) -> None:
    match run.status:
        case RunStatus.PENDING:
            assert (run.worker_id, run.wake_at, run.finished_at) == (None, None, None), run
        case RunStatus.RUNNING:
            assert run.worker_id, run
            assert run.started_at is not None, run
            assert run.version is not None, run
            assert (run.wake_at, run.finished_at) == (None, None), run
        case RunStatus.SLEEPING:
            assert run.wait_reason is not None, run
            assert (run.worker_id, run.finished_at) == (None, None), run
        case RunStatus.COMPLETED:
            assert (run.output is None) == (run.continued_as is not None), run
            assert run.error is None, run
            assert run.finished_at is not None, run
        case RunStatus.FAILED | RunStatus.CANCELLED:
            assert run.output is None, run
            assert run.error is not None, run
            assert run.finished_at is not None, run
        case RunStatus.PAUSED:
            assert (run.worker_id, run.finished_at) == (None, None), run


def check_steps(run: RunRecord, steps: list[StepRecord]) -> None:
    # One command may both begin and end a step (a sleep that is over at once): then both have its seq.
    # What a race closed is not a result: it may have the race's seq, or none.
    seqs = [step.begun_seq for step in steps]
    seqs += [step.seq for step in steps if step.seq not in (0, step.begun_seq) and step.status != StepStatus.ABANDONED]
    assert len(seqs) == len(set(seqs)), f"a seq was given twice in {run.run}: {sorted(seqs)}"
    assert all(0 < seq <= run.last_seq for seq in seqs), run
    for step in steps:
        assert step.begun_seq > 0, step
        finished = step.status in (StepStatus.COMPLETED, StepStatus.FAILED)
        if step.status != StepStatus.ABANDONED:
            assert (step.seq >= step.begun_seq) if finished else (step.seq == 0), step
        assert (step.finished_at is None) == (step.status in OPEN_STEP), step
        assert (step.error is not None) == (step.status == StepStatus.FAILED), step
        assert [attempt.attempt for attempt in step.attempts if not attempt.lost] == list(range(1, step.attempt)), step
        if step.kind == StepKind.SLEEP:
            assert step.wake_at is not None, step
        if step.status == StepStatus.PENDING:
            assert step.retry_at is not None, step


def check_counts(run: RunRecord, steps: list[StepRecord]) -> None:
    """What a run says of its open steps is what they say; one that has ended says nothing."""
    open_steps = [] if run.status.ended else [step for step in steps if step.status in OPEN_STEP]
    waits = [step for step in open_steps if step.kind == StepKind.SIGNAL]
    retried = [step for step in open_steps if step.kind == StepKind.FUNCTION and step.attempt > 1]
    assert (run.awaits_signal, run.retrying_steps) == (len(waits), len(retried)), f"{run}: {waits}, {retried}"


async def check_unread(store: Store, run: RunRecord) -> None:
    """A run counts the signals that no step has, also when it has ended."""
    unread, after = 0, 0
    while page := await store.export_signals(run.run, after, _PAGE):
        unread += sum(signal.step_id is None for signal in page)
        after = page[-1].number
    assert run.unread_signals == unread, run


async def check_waits(store: Store, run: RunRecord, steps: list[StepRecord]) -> None:
    """Nothing is parked without a way to wake, and nothing waits for what has happened."""
    if run.status.ended:
        return
    open_steps = [step for step in steps if step.status in OPEN_STEP]
    for step in open_steps:
        if step.kind == StepKind.CHILD and step.child_run_id is None:
            assert run.status != RunStatus.SLEEPING, f"{run.run} waits for a child that is yet to be started: {step}"
        elif step.kind == StepKind.CHILD:
            child = await last_of_chain(store, run.run.namespace, step.child_run_id)
            assert not child.status.ended, f"{run.run} waits for a child that has ended: {child}"
    if run.blocked_by is not None:
        before = await store.get_run(run.run.namespace, run_id=run.blocked_by)
        assert before is not None, run
        assert not before.status.ended, f"{run.run} waits behind a run that has ended: {before}"
    if run.status != RunStatus.SLEEPING or run.blocked_by is not None:
        return
    times = [at for step in open_steps for at in (step.wake_at, step.retry_at) if at is not None]
    others = [step for step in open_steps if step.kind in (StepKind.SIGNAL, StepKind.CHILD)]
    assert run.wake_at is not None or others, f"nothing will wake it: {run}"
    if run.wait_reason != WaitReason.RETRY and times:  # a run's own retry may come later than a sleep it left open
        assert run.wake_at is not None, f"it would sleep through {min(times)}: {run}"
        assert run.wake_at <= min(times), f"it would sleep through {min(times)}: {run}"


async def last_of_chain(store: Store, namespace: str, run_id: str | None) -> RunRecord:
    """The run, or the one it goes on as."""
    assert run_id, "a child's step without a child"
    record = await store.get_run(namespace, run_id=run_id)
    assert record is not None, f"{run_id} is not there"
    return record if record.continued_as is None else await last_of_chain(store, namespace, record.continued_as)
