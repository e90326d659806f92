"""What a worker says, as short as it can be said."""

from kagzi.core.commands import Assignment, BeginStep, CompleteStep, StartRun
from kagzi.core.outcomes import Outcome, Started
from kagzi.core.records import Held, Lease, Payload, RunKey
from kagzi.store.postgres import PostgresStore
from kagzi.store.protocol import LeaseTerms
from kagzi.system import SystemIds

NOW = 1_767_323_045_000_000
LEASE_US = 15_000_000
TERMS = LeaseTerms(until=NOW + LEASE_US, renew_before=NOW + LEASE_US // 2)
OUTPUT = Payload(b'{"i": 1}')

_ids = SystemIds()


async def running(store: PostgresStore, count: int) -> list[Held]:
    """Runs that a worker holds."""
    commands = [start(assigned=True) for _ in range(count)]
    outcomes = await store.write(commands, NOW, TERMS)
    assert all(isinstance(outcome, Started) for outcome in outcomes)
    return [Held(command.run, Lease(1, 7)) for command in commands]


def start(*, assigned: bool = False, workflow_type: str = "ship") -> StartRun:
    run_id = _ids.run_id(NOW)
    return StartRun(
        run=RunKey("default", run_id),
        workflow_id=run_id,
        workflow_type=workflow_type,
        request_id=_ids.token(),
        input=OUTPUT,
        assignment=Assignment("worker", "1", 7, NOW + LEASE_US) if assigned else None,
    )


def begin(held: Held, step_id: str) -> BeginStep:
    return BeginStep(run=held.run, lease=held.lease, step_id=step_id, name=step_id)


def complete(held: Held, step_id: str) -> CompleteStep:
    return CompleteStep(run=held.run, lease=held.lease, step_id=step_id, attempt=1, output=OUTPUT)


async def write(store: PostgresStore, *commands: StartRun | BeginStep | CompleteStep) -> list[Outcome]:
    return list(await store.write(commands, NOW, TERMS))
