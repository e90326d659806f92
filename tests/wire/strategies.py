"""Hypothesis strategies: any record of core that may be written into a message."""

from hypothesis import strategies as st

from kagzi.core.error_details import ErrorCode, ErrorDetail, ErrorKind
from kagzi.core.records import (
    ClaimedRun,
    HistoryPage,
    HistoryStep,
    Lease,
    Payload,
    RunAttributes,
    RunEnd,
    RunFilter,
    RunKey,
    RunRecord,
    Served,
    StepAttempt,
    StepRecord,
    WorkerRecord,
)
from kagzi.core.retry.policy import RetryPolicy
from kagzi.core.run.commands import StartRequest
from kagzi.core.schedules.scheduled_time import with_scheduled_time
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason, WorkerStatus
from kagzi.core.workflow_types.names import canonical_type

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
names = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
types = names.map(canonical_type)
times = st.integers(1, 253_402_300_799_999_999)
maybe_times = st.none() | times
counts = st.integers(0, 2**31 - 1)
longs = st.integers(0, 2**63 - 1)
labels = st.dictionaries(names, texts, max_size=3)
payloads = st.builds(Payload, st.binary(max_size=40), st.none() | st.dictionaries(names, texts, min_size=1, max_size=2))
maybe_payloads = st.none() | payloads
contexts = st.builds(
    with_scheduled_time,
    st.none() | payloads.filter(lambda payload: bool(payload.data)),
    st.none() | st.integers(1, 10**17),
)
leases = st.builds(Lease, longs, longs)
run_keys = st.builds(RunKey, names, names)

errors = st.recursive(
    st.none(),
    lambda cause: st.builds(
        ErrorDetail,
        code=st.sampled_from(ErrorCode),
        kind=st.sampled_from(ErrorKind),
        message=texts,
        type=texts,
        bases=st.lists(texts, max_size=3).map(tuple),
        traceback=texts,
        non_retryable=st.booleans(),
        retry_after_ms=longs,
        subject=texts,
        subject_id=texts,
        metadata=labels,
        cause=cause,
        exhausted=st.booleans(),
    ),
    max_leaves=3,
).filter(lambda error: error is not None)
maybe_errors = st.none() | errors

retries = st.builds(
    RetryPolicy,
    maximum_attempts=st.just(-1) | st.integers(1, 1_000),
    initial_interval_ms=st.integers(0, 10**9),
    backoff_coefficient=st.floats(1, 100),
    maximum_interval_ms=st.integers(1, 10**9),
    non_retryable_errors=st.lists(names, max_size=3).map(tuple),
    jitter=st.floats(0, 1),
    retry_on_errors=st.lists(names, max_size=3).map(tuple),
)
maybe_retries = st.none() | retries

attributes = {
    "workflow_type": types,
    "priority": st.integers(-100, 100),
    "labels": labels,
    "deadline_at": maybe_times,
    "retry": maybe_retries,
    "task_queue": texts.map(lambda text: text and f"queue {text}"),  # never like the type
}
# The others are texts.
attributes |= {name: texts for name in RunAttributes.__struct_fields__ if name not in attributes}

history_steps = st.builds(
    HistoryStep,
    step_id=names,
    kind=st.sampled_from(StepKind),
    status=st.sampled_from(StepStatus),
    begun_seq=longs,
    attempt=counts,
    seq=longs,
    at=longs,
    output=maybe_payloads,
    error=maybe_errors,
    retry_at=maybe_times,
    wake_at=maybe_times,
    child_run_id=st.none() | names,
    details=maybe_payloads,
)

claimed_runs = st.builds(
    ClaimedRun,
    run=run_keys,
    lease=leases,
    worker_id=st.just("w"),
    workflow_id=names,
    workflow_type=types,
    version=names,
    attempt=counts,
    input=maybe_payloads,
    context=contexts,
    labels=labels,
    created_at=times,
    claimed_at=times,
    deadline_at=maybe_times,
    last_seq=longs,
    history=st.builds(HistoryPage, st.lists(history_steps, min_size=1, max_size=3).map(tuple), st.booleans(), longs),
    cancel_requested=st.booleans(),
    cancel_reason=texts,
    pause_requested=st.booleans(),
    parent_run_id=st.none() | names,
)

run_records = st.builds(
    RunRecord,
    **attributes,
    run=run_keys,
    workflow_id=names,
    version=st.none() | names,
    status=st.sampled_from(RunStatus),
    wait_reason=st.none() | st.sampled_from(WaitReason),
    attempt=counts,
    created_at=times,
    started_at=maybe_times,
    finished_at=maybe_times,
    wake_at=maybe_times,
    worker_id=st.none() | names,
    last_seq=longs,
    cancel_requested=st.booleans(),
    cancel_reason=texts,
    error=maybe_errors,
    problem=maybe_errors,
    parent_run_id=st.none() | names,
    parent_step_id=st.none() | names,
    lost_leases=st.just(0),
    status_text=texts,
    progress=st.none() | st.floats(0, 1),
    forked_from=st.none() | names,
    continued_as=st.none() | names,
    pause_requested=st.booleans(),
    pause_reason=texts,
    schedule_id=st.none() | names,
    blocked_by=st.none() | names,
    waits=st.lists(names, max_size=2).map(tuple),
    input=maybe_payloads,
    context=contexts,
    output=maybe_payloads,
    state=maybe_payloads,
    state_at=maybe_times,
)

run_endings = st.builds(
    RunEnd,
    run=run_keys,
    status=st.sampled_from([RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED]),
    output=maybe_payloads,
    error=maybe_errors,
    continued_as=st.none() | names,
)

step_attempts = st.builds(
    StepAttempt,
    attempt=counts,
    started_at=maybe_times,
    finished_at=times,
    error=errors,
    worker_id=st.none() | names,
    input=maybe_payloads,
    before_retry=st.booleans(),
)
step_records = st.builds(
    StepRecord,
    run=run_keys,
    step_id=names,
    name=names,
    kind=st.sampled_from(StepKind),
    status=st.sampled_from(StepStatus),
    attempt=counts,
    begun_seq=st.just(0),
    seq=longs,
    created_at=times,
    started_at=maybe_times,
    finished_at=maybe_times,
    output=maybe_payloads,
    input=maybe_payloads,
    error=maybe_errors,
    retry=maybe_retries,
    timeout_ms=longs,
    retry_at=maybe_times,
    wake_at=maybe_times,
    child_run_id=st.none() | names,
    parent_step_id=texts,
    parallel_group_id=texts,
    worker_id=st.none() | names,
    attempts=st.lists(step_attempts, max_size=2).map(tuple),
    details=maybe_payloads,
    retry_seq=longs,
    retried_at=maybe_times,
)

worker_records = st.builds(
    WorkerRecord,
    worker_id=names,
    namespace=names,
    served=st.lists(st.builds(Served, types, names), min_size=1, max_size=3).map(tuple),
    max_concurrent=st.integers(1, 10_000),
    hostname=texts,
    pid=counts,
    sdk_version=texts,
    build_id=texts,
    labels=labels,
    status=st.sampled_from(WorkerStatus),
    active_count=counts,
    total_completed=longs,
    total_failed=longs,
    registered_at=times,
    last_heartbeat_at=times,
)

start_requests = st.builds(
    StartRequest,
    **attributes,
    namespace=names,
    workflow_id=texts,
    request_id=texts,
    input=maybe_payloads,
    context=maybe_payloads,
    version=texts,
    start_at=maybe_times,
    delay_us=st.none() | st.integers(0, 10**15),
    timeout_us=st.none() | st.integers(0, 10**15),
    on_conflict=st.sampled_from(["existing", "existing_or_completed", "fail", "replace"]),
)

run_filters = st.builds(
    RunFilter,
    statuses=st.lists(st.sampled_from(RunStatus), unique=True).map(tuple),
    workflow_types=st.lists(types, max_size=2).map(tuple),
    labels=labels,
    created_after=maybe_times,
    created_before=maybe_times,
    workflow_id=texts,
    version=texts,
    parent_run_id=texts,
    schedule_id=texts,
    concurrency_key=texts,
    has_problem=st.none() | st.booleans(),
)
