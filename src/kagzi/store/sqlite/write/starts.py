"""Starts: a new run, or the existing one."""

from collections.abc import Callable
from operator import attrgetter

import msgspec

from ....core.conversion import fields_of
from ....core.ids import is_uuid
from ....core.records import NamespaceRecord
from ....core.run.commands import StartRun
from ....core.run.control import replaced_error
from ....core.run.outcomes import Existing, Outcome, Refused, Started
from ....core.run.refusals import (
    namespace_disabled,
    namespace_full,
    namespace_gone,
    request_id_of_type,
    workflow_id_active,
    workflow_id_of_type,
)
from ....core.states import RUN_STATUS_OF_CODE, RunStatus
from ....core.text.storable import is_storable
from ...rows import type_of
from ..connection.connection import Row
from .admission import evict, refuse
from .endings import end_for_another, run_head
from .fast_path import WritePlan
from .handing_on import hand_on_to
from .namespace_quota import note_start, refuse_start
from .new_runs import create_run
from .signals import ended_run_with_signal, find_signalled_run, give

_text_fields = [field.name for field in fields_of(StartRun) if type_of(field) is str]
_texts: Callable[[StartRun], tuple[str | None, ...]] = attrgetter(*_text_fields)


def plan_start(plan: WritePlan, command: StartRun) -> Outcome | None:
    """The ordinary start: no conflict is known without reading. None: the start must be checked by itself."""
    namespace = plan.writer.namespaces.get(command.run.namespace)
    if namespace is None or not namespace.enabled or command.on_conflict not in ("existing", "fail"):
        return None
    if command.signal is not None or command.blocked_by:
        return None
    if namespace.limits_starts or namespace.running_runs_limit is not None:
        return None
    limits = plan.writer.types.limits(command.run.namespace, command.workflow_type)
    if limits is not None and limits.when_full != "queue":
        return None
    texts = "".join(filter(None, _texts(command)))
    if command.labels:
        texts = "".join((texts, *command.labels, *command.labels.values()))
    if not is_uuid(command.run.run_id) or not is_storable(texts):
        return None
    return create_run(plan, command, leased=command.assignment is not None)


def start_one(plan: WritePlan, command: StartRun) -> Outcome:
    """A start by itself, with a check for everything that may conflict. The plan must be flushed before."""
    namespace = plan.writer.namespaces.ensure(command.run.namespace, plan.now)
    if not namespace.enabled:
        return _repeated(plan, command) or _closed(namespace)
    in_the_way = _find_existing(plan, command)
    if in_the_way is not None and not isinstance(in_the_way, _Replaced):
        return _signal(plan, command, in_the_way)
    if (over := _over_limit(plan, namespace) or refuse_start(namespace, plan.now)) is not None:
        return over
    created = _create_if_allowed(plan, command, namespace)
    if isinstance(created, Started):
        note_start(plan.writer, namespace, plan.now)
        if in_the_way is not None:
            plan.effects.append(hand_on_to(plan.writer, in_the_way.run_id, created.run_id))
    return _signal(plan, command, created)


def insert_child(plan: WritePlan, command: StartRun) -> None:
    """A start that has been decided."""
    evict(plan, command)
    create_run(plan, command, leased=command.assignment is not None)
    plan.flush()


def _create_if_allowed(plan: WritePlan, command: StartRun, namespace: NamespaceRecord) -> Started | Refused:
    command = _behind(plan, command)
    if (full := refuse(plan, command)) is not None:
        return full
    evict(plan, command)
    leased = command.assignment is not None and namespace.running_runs_limit is None
    started = create_run(plan, command, leased=leased)
    plan.flush()
    return started


def _signal(plan: WritePlan, command: StartRun, outcome: Outcome) -> Outcome:
    """Signal-with-start: send the signal to the run that the start returns."""
    if command.signal is None or not isinstance(outcome, (Started, Existing)):
        return outcome
    row = find_signalled_run(
        plan.writer,
        command.run.namespace,
        run_id=outcome.run_id,
        workflow_id="",
        request_id=command.signal.request_id,
    )
    assert row is not None  # it was just created or found
    signal = command.signal if isinstance(outcome, Existing) else msgspec.structs.replace(command.signal, start=None)
    signalled, effects = give(plan.writer, row, signal, plan.now)
    plan.effects.append(effects)
    return signalled if isinstance(signalled, Refused) else outcome


def _closed(namespace: NamespaceRecord) -> Refused:
    if namespace.deleting:
        return namespace_gone(namespace.namespace)
    return namespace_disabled(namespace.namespace)


def _repeated(plan: WritePlan, command: StartRun) -> Outcome | None:
    """The run that the same request started; or, for signal-with-start, an ended run that has the signal."""
    namespace, signal = command.run.namespace, command.signal
    row = plan.database.row("run_of_request", (namespace, command.request_id)) if command.request_id else None
    if row is not None:
        if row[2] != command.workflow_type:
            return request_id_of_type(command.request_id, row[0], row[2], command.workflow_type)
        return _existing(row, repeated=True)
    if signal is None:
        return None
    row = ended_run_with_signal(plan.writer, namespace, command.workflow_id, signal.request_id)
    return None if row is None else _existing(row)


class _Replaced(msgspec.Struct, frozen=True):
    """The run that was terminated for the new one."""

    run_id: str


def _find_existing(plan: WritePlan, command: StartRun) -> Outcome | _Replaced | None:
    database, namespace = plan.database, command.run.namespace
    if (repeated := _repeated(plan, command)) is not None:
        return repeated
    row = database.row("active_run", (namespace, command.workflow_id))
    if row is not None:
        return _conflict(plan, command, row)
    if command.on_conflict == "existing_or_completed":
        row = database.row("last_completed_run", (namespace, command.workflow_id, command.workflow_type))
        if row is not None:
            return _existing(row)
    row = database.row("run_with_id", (namespace, command.run.run_id))
    return None if row is None else _existing(row)


def _conflict(plan: WritePlan, command: StartRun, row: Row) -> Outcome | _Replaced:
    """Another run has the workflow_id."""
    run_id, workflow_id, workflow_type, _status = row
    if workflow_type != command.workflow_type:
        return workflow_id_of_type(workflow_id, run_id, workflow_type, command.workflow_type)
    if command.on_conflict == "fail":
        return workflow_id_active(workflow_id, run_id)
    if command.on_conflict != "replace":
        return _existing(row)
    namespace = plan.writer.namespaces.ensure(command.run.namespace, plan.now)
    full = refuse(plan, command, leaving=run_id) or refuse_start(namespace, plan.now)
    if full is not None:
        return full
    replaced = plan.database.row("run_to_change", (run_id,))
    assert replaced is not None  # it was just read
    error = replaced_error(command.run.run_id)
    plan.effects.append(end_for_another(plan.writer, run_head(replaced), RunStatus.CANCELLED, error, plan.now))
    return _Replaced(run_id)


def _existing(row: Row, *, repeated: bool = False) -> Existing:
    return Existing(row[0], row[1], RUN_STATUS_OF_CODE[row[3]], repeated)


def _over_limit(plan: WritePlan, namespace: NamespaceRecord) -> Refused | None:
    limit = namespace.open_runs_limit
    if limit is None:
        return None
    counted = plan.database.row("count_open_runs", (namespace.namespace, limit))
    if counted is None or counted[0] < limit:
        return None
    return namespace_full(namespace.namespace, limit)


def _behind(plan: WritePlan, command: StartRun) -> StartRun:
    """Watch the run that this one waits for. If that has ended, the start no longer waits."""
    if not command.blocked_by:
        return command
    if plan.database.run("watch_blocker", (command.blocked_by, command.run.namespace)):
        plan.fences.forget(command.blocked_by)
        return command
    return msgspec.structs.replace(command, blocked_by="")
