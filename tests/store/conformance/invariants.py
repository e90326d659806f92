"""What holds at every moment, whatever happened: checked from outside, through the reading verbs only."""

from kagzi.core.records import RunFilter, RunRecord, StepRecord
from kagzi.core.states import RunStatus, StepKind, StepStatus
from kagzi.store.protocol import Store


async def check_invariants(store: Store, namespace: str = "default") -> list[RunRecord]:
    """Every run of the namespace is in a shape that its state allows. Answers them, newest first."""
    runs = list((await store.list_runs(namespace, RunFilter(), None, 1_000)).rows)
    open_ids = [run.workflow_id for run in runs if not run.status.ended]
    assert len(open_ids) == len(set(open_ids)), "two open runs share a workflow_id"
    for listed in runs:
        run = await store.get_run(namespace, run_id=listed.run.run_id)
        assert run is not None
        check_run(run)
        steps = await store.list_steps(run.run, name=None, after_begun_seq=0, limit=1_000, payloads=True)
        assert steps is not None
        check_steps(run, list(steps.rows))
    return runs


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
            assert run.wake_at is not None, f"nothing will wake it: {run}"
            assert (run.worker_id, run.finished_at) == (None, None), run
        case RunStatus.COMPLETED:
            assert run.output is not None, run
            assert run.error is None, run
            assert run.finished_at is not None, run
        case RunStatus.FAILED | RunStatus.CANCELLED:
            assert run.output is None, run
            assert run.error is not None, run
            assert run.finished_at is not None, run
        case RunStatus.PAUSED:
            assert run.finished_at is None, run


def check_steps(run: RunRecord, steps: list[StepRecord]) -> None:
    # One command may both begin and end a step (a sleep that is over at once): then both have its seq.
    seqs = [seq for step in steps for seq in {step.begun_seq, step.seq} if seq]
    assert len(seqs) == len(set(seqs)), f"a seq was given twice in {run.run}: {sorted(seqs)}"
    assert all(0 < seq <= run.last_seq for seq in seqs), run
    for step in steps:
        assert step.begun_seq > 0, step
        finished = step.status in (StepStatus.COMPLETED, StepStatus.FAILED)
        assert (step.seq >= step.begun_seq) if finished else (step.seq == 0), step
        assert (step.finished_at is not None) == finished, step
        assert (step.error is not None) == (step.status == StepStatus.FAILED), step
        assert [attempt.attempt for attempt in step.attempts] == list(range(1, step.attempt)), step
        if step.kind == StepKind.SLEEP:
            assert step.wake_at is not None, step
        if step.status == StepStatus.PENDING:
            assert step.retry_at is not None, step
