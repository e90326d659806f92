"""Validation of requests. Every refusal names the field, the limit and the remedy, and comes before any change."""

from collections.abc import Mapping, Sequence

from ...core import limits
from ...core.checks.starts import attributes, child_start, context, start
from ...core.checks.values import entries, lines, name, optional_name, over_limit, payload, retry, text, within
from ...core.duration import check_duration, check_time
from ...core.errors import InvalidArgument, NotFound, limit_reached, not_found
from ...core.ids import is_uuid
from ...core.records import RunFilter, RunKey, RunOrder, Served, WorkerRecord
from ...core.run.commands import SendSignal, SignalReplacement
from ...core.workflow_types.schemas import TypeSchemas

__all__ = [
    "INT32_END",
    "INT64_END",
    "REASON_BYTES",
    "attributes",
    "batch_size",
    "bulk_filter",
    "child_start",
    "context",
    "duration",
    "entries",
    "key",
    "leases",
    "lines",
    "name",
    "no_run",
    "one_of",
    "optional_name",
    "over_limit",
    "payload",
    "reason",
    "retry",
    "run_filter",
    "run_id",
    "run_order",
    "signal",
    "start",
    "text",
    "timestamp",
    "type_schemas",
    "wait_ms",
    "within",
    "worker",
]  # includes the checks of core, which clients use too

INT64_END = 1 << 63
INT32_END = 1 << 31
REASON_BYTES = 4 * limits.KIB

timestamp = check_time
duration = check_duration


def reason(value: str, field: str = "reason") -> None:
    lines(value, field, REASON_BYTES)


def run_id(value: str, field: str = "run_id") -> None:
    """A malformed id raises NotFound, like any id that does not exist."""
    if not value:
        raise InvalidArgument(f"{field} is empty. Name the run.", field=field)
    if not is_uuid(value):
        raise no_run(value)


def one_of(run_id_value: str, workflow_id: str) -> None:
    """A run is named by its run id or its workflow id, not by both."""
    if bool(run_id_value) == bool(workflow_id):
        which = "both are given" if run_id_value else "neither is given"
        raise InvalidArgument(f"run_id or workflow_id: {which}. Give exactly one.", field="run_id")
    if run_id_value:
        run_id(run_id_value)
    else:
        name(workflow_id, "workflow_id")


def no_run(which: str) -> NotFound:
    return not_found("run", which if len(which) <= limits.NAME_BYTES else which[: limits.NAME_BYTES] + "...")


def wait_ms(value: int, field: str) -> None:
    if not 0 <= value <= limits.POLL_WAIT_MS:
        raise InvalidArgument(
            f"{field} is {value} ms; it must be 0..{limits.POLL_WAIT_MS} ms. Ask again to wait longer.", field=field
        )


def signal(value: SendSignal | SignalReplacement, payload_bytes: int) -> None:
    name(value.name, "signal_name")
    optional_name(value.request_id, "request_id")
    payload(value.payload, "payload", payload_bytes)


def worker(record: WorkerRecord) -> None:
    name(record.namespace, "namespace")
    name(record.worker_id, "worker_id")
    if not record.served:
        raise InvalidArgument("workflow_types is empty. Name at least one type.", field="workflow_types")
    if len(record.served) > limits.WORKER_TYPES:
        count = f"{len(record.served)} types"
        raise over_limit("workflow_types", count, "worker_types", limits.WORKER_TYPES, "Use several workers.")
    for served in record.served:
        name(served.workflow_type, "workflow_types")
        name(served.version, "version")
    if len(set(record.served)) != len(record.served):
        raise InvalidArgument("a workflow type is named twice at one version. Name it once.", field="workflow_types")
    within(record.max_concurrent, 1, limits.WORKER_MAX_CONCURRENT, "max_concurrent")
    for field, value in (
        ("hostname", record.hostname),
        ("sdk version", record.sdk_version),
        ("build_id", record.build_id),
    ):
        text(value, field, limits.NAME_BYTES)
    within(record.pid, 0, INT32_END - 1, "pid")
    entries(record.labels, "labels", limits.LABELS)


def type_schemas(schemas: Mapping[Served, TypeSchemas]) -> None:
    """Checks the schemas that a worker registers."""
    total = 0
    for served, each in schemas.items():
        of = f" of {served.workflow_type}"
        texts = {
            f"description{of}": each.description,
            f"input_schema{of}": each.input_schema,
            f"output_schema{of}": each.output_schema,
            **{f"signal_schemas[{signal}]{of}": schema for signal, schema in each.signal_schemas.items()},
        }
        if len(each.signal_schemas) > limits.SCHEMA_SIGNALS:
            count = f"{len(each.signal_schemas)} signals"
            raise over_limit(f"signal_schemas{of}", count, "signals", limits.SCHEMA_SIGNALS, "Leave some out.")
        for signal in each.signal_schemas:
            name(signal, "signal_schemas key")
        for field, value in texts.items():
            if "\x00" in value:
                raise InvalidArgument(f"{field} contains the control character U+0000. Remove it.", field=field)
            if (size := len(value.encode())) > limits.SCHEMA_BYTES:
                raise over_limit(field, f"{size} bytes", "schema_bytes", limits.SCHEMA_BYTES, "Leave it out.")
            total += size
    if total > limits.SCHEMAS_BYTES:
        raise over_limit("served", f"{total:,} bytes of schemas", "bytes", limits.SCHEMAS_BYTES, "Use several workers.")


def run_filter(where: RunFilter) -> None:
    within(len(where.workflow_types), 0, limits.WORKER_TYPES, "workflow_types count")
    for workflow_type in where.workflow_types:
        name(workflow_type, "workflow_types")
    entries(where.labels, "labels", limits.LABELS)
    optional_name(where.workflow_id, "workflow_id")
    optional_name(where.version, "version")
    optional_name(where.schedule_id, "schedule_id")
    optional_name(where.concurrency_key, "concurrency_key")
    optional_name(where.worker_id, "worker_id")
    within(len(where.run_ids), 0, limits.PAGE_MAX_ROWS, "run_ids count")
    for each in where.run_ids:
        run_id(each)
    timestamp(where.created_after, "created_after")
    timestamp(where.created_before, "created_before")
    timestamp(where.ended_after, "ended_after")
    timestamp(where.ended_before, "ended_before")
    optional_name(where.id_prefix, "id_prefix")


def run_order(where: RunFilter, order: RunOrder | None, page_token: str = "") -> RunOrder:
    """The order of a list. Raises InvalidArgument if the filter does not allow it."""
    run_filter(where)
    if where.id_prefix and (order == "ended" or where.by_end):
        raise InvalidArgument(
            "id_prefix is a search: its runs are not listed by end. Leave order=ended, ended_after and ended_before "
            "out.",
            field="id_prefix",
        )
    if where.id_prefix and page_token:
        raise InvalidArgument(
            "id_prefix is a search of one page. Leave page_token out, and give more of the id.", field="page_token"
        )
    if order == "created" and where.by_end:
        raise InvalidArgument(
            "runs that ended in a span are listed by end. Leave order out, or ask for order=ended.", field="order"
        )
    return order or where.order


def bulk_filter(where: RunFilter) -> None:
    """Checks that the filter can find all matching runs, page by page."""
    run_filter(where)
    if where == RunFilter():
        raise InvalidArgument(
            "filter is empty and would match every run. Give at least one condition, for example a status, "
            "a workflow type, a label or a time.",
            field="filter",
        )
    if where.id_prefix:
        raise InvalidArgument(
            "id_prefix is a search that shows some runs, not all. Select runs with other conditions, or name them.",
            field="id_prefix",
        )


def batch_size(items: Sequence[object], limit: int, field: str) -> None:
    if len(items) > limit:
        raise over_limit(field, f"{len(items)} items", "items", limit, "Send several.")


def leases(leased: Sequence[object]) -> None:
    if len(leased) > limits.HEARTBEAT_LEASES:
        raise InvalidArgument(
            f"leased names {len(leased)} leases; the limit is {limits.HEARTBEAT_LEASES}, the most that a worker may "
            "hold (max_concurrent). Name only what this worker holds.",
            field="leased",
            metadata=limit_reached("heartbeat_leases", limits.HEARTBEAT_LEASES),
        )


def key(namespace: str, run: str) -> RunKey:
    name(namespace, "namespace")
    run_id(run)
    return RunKey(namespace, run)
