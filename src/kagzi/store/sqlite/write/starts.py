"""Starts: a new run, or the one that is there."""

from typing import Any

import msgspec

from ....core.ids import is_uuid
from ....core.records import NamespaceRecord
from ....core.run.commands import StartRun
from ....core.run.control import replaced_error
from ....core.run.outcomes import Existing, Outcome, Refused, Started
from ....core.run.refusals import (
    namespace_disabled,
    namespace_full,
    namespace_gone,
    workflow_id_active,
    workflow_id_of_type,
)
from ....core.states import RUN_STATUS_OF_CODE, RunCode, RunStatus, WaitCode
from ....core.text_validation import is_storable
from ...rows import write_policy, write_strings
from ..connection.connection import Row
from .admission import evict, refuse
from .endings import end, run_head
from .fast_path import Wave
from .fences import Fence
from .namespace_quota import note_start, refuse_start
from .signals import give

_TIME, _CHILD = int(WaitCode.TIME), int(WaitCode.CHILD)


def plan_start(wave: Wave, command: StartRun) -> Outcome | None:
    """The ordinary start: nothing in the way, as far as one can tell without reading. None: look at it alone."""
    namespace = wave.writer.namespaces.get(command.run.namespace)
    if namespace is None or not namespace.enabled or command.on_conflict not in ("existing", "fail"):
        return None
    if command.signal is not None or command.blocked_by:
        return None
    if namespace.limits_starts or namespace.running_runs_limit is not None:
        return None
    limits = wave.writer.types.limits(command.run.namespace, command.workflow_type)
    if limits is not None and limits.when_full != "queue":
        return None
    names = (command.workflow_id, command.workflow_type, command.request_id)
    if not is_uuid(command.run.run_id) or not all(map(is_storable, names)):
        return None
    if command.labels or command.version or command.concurrency_key or command.schedule_id:
        texts = [*command.labels, *command.labels.values(), command.version or ""]
        texts += [command.concurrency_key, command.schedule_id]
        if not all(map(is_storable, texts)):
            return None
    return _create(wave, command, leased=command.assignment is not None)


def start_one(wave: Wave, command: StartRun) -> Outcome:
    """A start on its own, with all that may be in its way. What was gathered before it must be written."""
    namespace = wave.writer.namespaces.ensure(command.run.namespace, wave.now)
    if not namespace.enabled:
        return _repeated(wave, command) or _closed(namespace)
    if (in_the_way := _find_existing(wave, command)) is not None:
        return _signal(wave, command, in_the_way)
    if (over := _over_limit(wave, namespace) or refuse_start(namespace, wave.now)) is not None:
        return over
    created = _create_if_allowed(wave, command, namespace)
    if isinstance(created, Started):
        note_start(wave.writer, namespace, wave.now)
    return _signal(wave, command, created)


def insert_child(wave: Wave, command: StartRun) -> None:
    """A start that was decided on."""
    evict(wave, command)
    _create(wave, command, leased=command.assignment is not None)
    wave.flush()


def _create_if_allowed(wave: Wave, command: StartRun, namespace: NamespaceRecord) -> Started | Refused:
    command = _behind(wave, command)
    if (full := refuse(wave, command)) is not None:
        return full
    evict(wave, command)
    leased = command.assignment is not None and namespace.running_runs_limit is None
    started = _create(wave, command, leased=leased)
    wave.flush()
    return started


def _signal(wave: Wave, command: StartRun, outcome: Outcome) -> Outcome:
    """Signal-with-start: the signal goes to the run that the start is answered with."""
    if command.signal is None or not isinstance(outcome, (Started, Existing)):
        return outcome
    row = wave.database.row("signalled_run", (outcome.run_id,))
    assert row is not None  # it was just created or found
    signalled, effects = give(wave.writer, row, command.signal, wave.now)
    wave.effects.append(effects)
    return signalled if isinstance(signalled, Refused) else outcome


def _closed(namespace: NamespaceRecord) -> Refused:
    if namespace.deleting:
        return namespace_gone(namespace.namespace)
    return namespace_disabled(namespace.namespace)


def _repeated(wave: Wave, command: StartRun) -> Existing | None:
    row = wave.database.row("run_of_request", (command.run.namespace, command.request_id))
    return None if row is None else _existing(row)


def _find_existing(wave: Wave, command: StartRun) -> Outcome | None:
    database, namespace = wave.database, command.run.namespace
    if command.request_id and (repeated := _repeated(wave, command)) is not None:
        return repeated
    row = database.row("active_run", (namespace, command.workflow_id))
    if row is not None:
        return _conflict(wave, command, row)
    if command.on_conflict == "existing_or_completed":
        row = database.row("last_completed_run", (namespace, command.workflow_id, command.workflow_type))
        if row is not None:
            return _existing(row)
    row = database.row("run_with_id", (namespace, command.run.run_id))
    return None if row is None else _existing(row)


def _conflict(wave: Wave, command: StartRun, row: Row) -> Outcome | None:
    """Another run has the workflow_id. None: it was terminated to make room."""
    run_id, workflow_id, workflow_type, _status = row
    if workflow_type != command.workflow_type:
        return workflow_id_of_type(workflow_id, run_id, workflow_type, command.workflow_type)
    if command.on_conflict == "fail":
        return workflow_id_active(workflow_id, run_id)
    if command.on_conflict != "replace":
        return _existing(row)
    namespace = wave.writer.namespaces.ensure(command.run.namespace, wave.now)
    full = refuse(wave, command, leaving=run_id) or refuse_start(namespace, wave.now)
    if full is not None:
        return full
    replaced = wave.database.row("run_to_change", (run_id,))
    assert replaced is not None  # it was just read
    error = replaced_error(command.run.run_id)
    wave.effects.append(end(wave.writer, run_head(replaced), RunStatus.CANCELLED, error, wave.now))
    return None


def _existing(row: Row) -> Existing:
    return Existing(row[0], row[1], RUN_STATUS_OF_CODE[row[3]])


def _over_limit(wave: Wave, namespace: NamespaceRecord) -> Refused | None:
    limit = namespace.open_runs_limit
    if limit is None:
        return None
    counted = wave.database.row("count_open_runs", (namespace.namespace, limit))
    if counted is None or counted[0] < limit:
        return None
    return namespace_full(namespace.namespace, limit)


def _behind(wave: Wave, command: StartRun) -> StartRun:
    """The run that this one waits behind is watched from now on; one that has ended is left out."""
    if not command.blocked_by:
        return command
    if wave.database.run("watch_blocker", (command.blocked_by, command.run.namespace)):
        wave.fences.forget(command.blocked_by)
        return command
    return msgspec.structs.replace(command, blocked_by="")


def _create(wave: Wave, command: StartRun, *, leased: bool) -> Started:
    """Gather the run's rows. It sleeps until its start time or until the one before it has ended, or is leased to whom it is
    assigned, or waits for a worker. Of a type with limits nothing is inserted as leased: a claim counts."""
    now, run = wave.now, command.run
    limits = wave.writer.types.limits(run.namespace, command.workflow_type)
    due_at = command.start_at if command.start_at is not None and command.start_at > now else None
    leased = leased and limits is None and due_at is None and not command.blocked_by
    assignment = command.assignment if leased else None
    head = (run.run_id, run.namespace, command.workflow_id, command.workflow_type)
    tail = (
        command.deadline_at,
        write_policy(command.retry),
        command.request_id or None,
        write_strings(command.labels),
        now,
    )
    state: tuple[
        Any, ...
    ]  # version, status, wait_reason, priority, lease, nonce, worker, lease_until, ready_at, due_at
    if assignment is not None:
        version = command.version or assignment.version
        status = RunCode.RUNNING
        state = (version, int(status), None, command.priority, 1, assignment.nonce, assignment.worker_id)
        state += (assignment.lease_until, None, None)
    elif command.blocked_by:
        status = RunCode.SLEEPING
        state = (command.version, int(status), _CHILD, command.priority, 0, 0, None, None, None, None)
    elif due_at is not None:
        status = RunCode.SLEEPING
        state = (command.version, int(status), _TIME, command.priority, 0, 0, None, None, None, due_at)
    else:
        status = RunCode.PENDING
        state = (command.version, int(status), None, command.priority, 0, 0, None, None, now, None)
    no_key = None if limits is None or not limits.by_key else ""  # where keys take turns those without one do, too
    links = (command.concurrency_key or no_key, command.schedule_id or None, command.blocked_by or None)
    wave.add_run(command, (*head, *state, *tail, None if assignment is None else now, *links))
    if assignment is not None:
        fence = Fence(
            run.run_id,
            run.namespace,
            1,
            assignment.nonce,
            0,
            command.deadline_at,
            assignment.lease_until,
            assignment.worker_id,
        )
        wave.fences.put(fence)
    return Started(run.run_id, command.workflow_id, RUN_STATUS_OF_CODE[status], now)
