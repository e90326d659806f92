"""Commands of a worker, as short as they can be written."""

from collections.abc import Iterator
from typing import Any

from kagzi.core.records import Lease, Payload, RunKey, RunLease
from kagzi.core.run.commands import (
    Assignment,
    BeginStep,
    Command,
    CompleteStep,
    Park,
    SendSignal,
    StartChild,
    StartRun,
)
from kagzi.core.run.outcomes import ChildStarted, Outcome, Started
from kagzi.store.postgres import PostgresStore
from kagzi.store.protocol import LeaseTerms
from kagzi.system import SystemIds

NOW = 1_767_323_045_000_000
LEASE_US = 15_000_000
TERMS = LeaseTerms(until=NOW + LEASE_US, renew_before=NOW + LEASE_US // 2)
OUTPUT = Payload(b'{"i": 1}')

_ids = SystemIds()


async def running(store: PostgresStore, count: int) -> list[RunLease]:
    """Runs that a worker holds."""
    commands = [start(assigned=True) for _ in range(count)]
    outcomes, _ = await store.write(commands, NOW, TERMS)
    assert all(isinstance(outcome, Started) for outcome in outcomes)
    return [RunLease(command.run, Lease(1, 7)) for command in commands]


def start(*, assigned: bool = False, workflow_type: str = "ship", workflow_id: str = "") -> StartRun:
    run_id = _ids.run_id(NOW, "default")
    return StartRun(
        run=RunKey("default", run_id),
        workflow_id=workflow_id or run_id,
        workflow_type=workflow_type,
        request_id=_ids.token(),
        input=OUTPUT,
        assignment=Assignment("worker", "1", 7, NOW + LEASE_US) if assigned else None,
    )


def begin(leased: RunLease, step_id: str) -> BeginStep:
    return BeginStep(run=leased.run, lease=leased.lease, step_id=step_id, name=step_id)


def complete(leased: RunLease, step_id: str) -> CompleteStep:
    return CompleteStep(run=leased.run, lease=leased.lease, step_id=step_id, attempt=1, output=OUTPUT)


def park(leased: RunLease) -> Park:
    return Park(run=leased.run, lease=leased.lease, waits=(), known_seq=1_000_000)


def signal(name: str) -> SendSignal:
    return SendSignal(name=name, payload=OUTPUT, request_id=_ids.token())


def start_child(
    parent: RunLease, step_id: str, *, workflow_id: str = "", assigned: bool = False, attach: bool = False
) -> StartChild:
    return StartChild(
        run=parent.run,
        lease=parent.lease,
        step_id=step_id,
        name="child",
        start=start(assigned=assigned, workflow_type="child", workflow_id=workflow_id),
        attach=attach,
    )


async def leased_child(store: PostgresStore, parent: RunLease, step_id: str) -> RunLease:
    """A child of a run, in the hands of a worker."""
    command = start_child(parent, step_id, assigned=True)
    [outcome] = await write(store, command)
    assert isinstance(outcome, ChildStarted)
    return RunLease(command.start.run, Lease(1, 7))


async def write(store: PostgresStore, *commands: Command) -> list[Outcome]:
    return list((await store.write(commands, NOW, TERMS))[0])


def flatten(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A plan of EXPLAIN and all plans within it."""
    yield node
    for child in node.get("Plans", []):
        yield from flatten(child)
