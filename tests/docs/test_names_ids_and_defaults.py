"""Every figure of docs/reference/names-ids-and-defaults.md is the one in the code, and none is left unchecked."""

import inspect
import re
from datetime import timedelta
from typing import Any

import pytest

from kagzi import Kagzi, Retry, Worker, parse_duration, step, workflow
from kagzi.core import limits
from kagzi.core.errors import InvalidArgument
from kagzi.core.records import DEFAULT_NAMESPACE
from kagzi.core.retry.policy import SERVER_DEFAULT
from kagzi.engine.checks import requests as checks
from kagzi.engine.checks.schedules import check_id
from kagzi.sdk.transport.connection import CONNECT_S, REFUSED_S
from kagzi.sdk.workflow.signatures import check_name
from tests.docs.snippets import ROOT

TEXT = (ROOT / "docs/reference/names-ids-and-defaults.md").read_text()
SETTINGS = limits.Settings()


def default_of(function: Any, parameter: str) -> Any:
    return inspect.signature(function).parameters[parameter].default


def size(count: int) -> str:
    for unit, name in ((limits.MIB, "MiB"), (limits.KIB, "KiB")):
        if count % unit == 0 and count > limits.KIB:
            return f"{count // unit} {name}"
    return f"{count:,} bytes"


def span(duration: timedelta | str | float) -> str:
    """Milliseconds, or a duration."""
    whole = timedelta(milliseconds=duration) if isinstance(duration, (int, float)) else parse_duration(duration)
    seconds = int(whole.total_seconds())
    for unit, name in ((86_400, "day"), (60, "min"), (1, "s")):
        if seconds % unit == 0 and seconds >= unit:
            count = seconds // unit
            return f"{count:,} {name}{'s' if name == 'day' and count > 1 else ''}"
    raise AssertionError(f"{duration} is not a whole number of seconds")


LIMITS = {
    "input, output, signal value or heartbeat details": size(limits.PAYLOAD_BYTES),
    "input or output that the SDK warns about": size(limits.PAYLOAD_WARN_BYTES),
    "steps per run": f"{limits.STEPS_PER_RUN:,}",
    "steps in cleanup scopes beyond these": f"{limits.CLEANUP_STEPS:,}",
    "signals that a run has not read": f"{limits.SIGNALS_BUFFERED:,}",
    "text of `ctx.set_status`": size(limits.STATUS_TEXT_BYTES),
    "value of `ctx.set_state`": size(limits.STATE_BYTES),
    "text of an error": size(limits.ERROR_MESSAGE_BYTES),
    "traceback of an error": size(limits.ERROR_TRACEBACK_BYTES),
    "starts in one `StartBatch`": f"{limits.START_BATCH_ITEMS:,}",
    f"elements of all lists and maps of one message over {size(limits.MESSAGE_UNCOUNTED_BYTES)}": (
        f"{limits.MESSAGE_ELEMENTS:,}"
    ),
    f"operations of a worker in one message over {size(limits.MESSAGE_UNCOUNTED_BYTES)}": (
        f"{limits.MESSAGE_OPERATIONS:,}"
    ),
    "rows of a page": f"{limits.PAGE_MAX_ROWS:,}",
    "size of a page": size(limits.PAGE_BYTES),
    "runs that a count counts": f"{limits.COUNT_CAP:,}",
    "priority": f"{limits.PRIORITY_MIN} to {limits.PRIORITY_MAX}",
    "`max_concurrent` and `threads` of a worker": f"{limits.WORKER_MAX_CONCURRENT:,}",
    "workflows of a worker": f"{limits.WORKER_TYPES:,}",
    "duration": span(limits.DURATION_MAX_US / 1_000),
    "shortest interval of a schedule": span(limits.SCHEDULE_INTERVAL_MIN_US / 1_000),
    "missed times that a schedule may catch up with": f"{limits.SCHEDULE_CATCHUP_MAX:,}",
    "runs of one backfill": f"{limits.SCHEDULE_BACKFILL:,}",
    "times of one preview": f"{limits.SCHEDULE_PREVIEW:,}",
}

DEFAULTS = {
    "attempts of a step": str(SERVER_DEFAULT.maximum_attempts),
    "first wait before a retry": span(SERVER_DEFAULT.initial_interval_ms),
    "growth of that wait": f"{SERVER_DEFAULT.backoff_coefficient:g} times",
    "longest wait before a retry": span(SERVER_DEFAULT.maximum_interval_ms),
    "jitter: the part of a wait that is random": "half of it"
    if SERVER_DEFAULT.jitter == 0.5 and SETTINGS.jitter
    else "-",
    "attempts of a whole run": "1",
    "timeout of a step, deadline of a run": "none",
    "version of a workflow": str(default_of(workflow, "version")),
    "`max_concurrent` of a worker": str(default_of(Worker, "max_concurrent")),
    "time to finish when a worker stops": span(default_of(Worker, "shutdown_grace")),
    "time to connect, if nothing listens at the address": span(REFUSED_S * 1_000),
    "time to connect, if the host does not respond": span(CONNECT_S * 1_000),
    "time for a call, including its repeats": span(default_of(Kagzi.connect, "call_timeout")),
    "lease of a run": span(SETTINGS.lease_ms),
    "heartbeat of a worker": span(SETTINGS.heartbeat_ms),
    "wait for a worker whose connection broke": span(SETTINGS.reconnect_grace_ms),
    "longest wait that keeps its slot": span(SETTINGS.resident_wait_ms),
    "time to clean up after a cancellation": span(SETTINGS.cleanup_ms),
    "workers that a run may lose without progress": str(SETTINGS.claim_cap),
    "runs are kept after their end": span(SETTINGS.retention_ms),
    "missed times that a schedule catches up with": str(limits.SCHEDULE_CATCHUP_DEFAULT),
    "age of a missed time that still becomes a run": span(limits.SCHEDULE_CATCHUP_WINDOW_US / 1_000),
    "lateness at which a time counts as missed": span(SETTINGS.schedule_late_ms),
    "rows of a page": str(limits.PAGE_DEFAULT_ROWS),
    "namespace": f"`{DEFAULT_NAMESPACE}`",
}


def rows(heading: str) -> list[list[str]]:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(("heading", "figures"), [("Limits", LIMITS), ("Defaults", DEFAULTS)])
def test_the_figures_are_those_of_the_code(heading: str, figures: dict[str, str]) -> None:
    assert {row[0]: row[1] for row in rows(heading)} == figures


def test_so_many_runs_are_searched_for_a_request() -> None:
    [by_workflow_id] = [row for row in rows("Request ids") if row[0].endswith("by workflow id")]
    assert f"the latest {limits.REQUEST_RUNS:,}" in by_workflow_id[1]


def test_a_retry_by_hand_has_the_servers_defaults() -> None:
    assert Retry().to_policy() == SERVER_DEFAULT
    assert default_of(step, "retry") is None
    assert default_of(step, "timeout") is None


def test_names_of_functions_become_names_of_workflows() -> None:
    @workflow
    async def sync_customer(ctx: Any) -> None: ...

    @step
    def charge_card() -> None: ...

    async def sync_all(ctx: Any) -> None: ...

    assert (sync_customer.name, charge_card.name) == ("sync-customer", "charge-card")
    assert workflow("SyncEverything")(sync_all).name == "SyncEverything"


NAMES = {row[0]: row[2] for row in rows("Names and ids")}


def test_what_names_and_ids_may_be() -> None:
    byte_limits = {what: int(match[1]) for what, text in NAMES.items() if (match := re.search(r"(\d+) bytes", text))}
    assert set(byte_limits.values()) == {limits.NAME_BYTES, limits.SCHEDULE_ID_BYTES}
    assert f"{limits.LABELS} labels per run" in NAMES["label, key and value"]
    assert byte_limits["schedule id"] == limits.SCHEDULE_ID_BYTES

    check_name("n" * limits.NAME_BYTES, what="name")
    for bad in ("", "a/b", "a#b", "a[b", "a]b", "a\nb", "$a", "n" * (limits.NAME_BYTES + 1)):
        with pytest.raises(InvalidArgument):
            check_name(bad, what="name")

    checks.name("order/7#[$]", "workflow_id")
    for bad in ("", "a\nb", "n" * (limits.NAME_BYTES + 1)):
        with pytest.raises(InvalidArgument):
            checks.name(bad, "workflow_id")

    check_id("s" * limits.SCHEDULE_ID_BYTES)
    with pytest.raises(InvalidArgument):
        check_id("s" * (limits.SCHEDULE_ID_BYTES + 1))
