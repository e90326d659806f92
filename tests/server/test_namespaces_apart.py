"""Namespaces see nothing of each other (P7), on every method there is: whoever names what belongs to another namespace
hears what they would hear of something that does not exist, and changes nothing.

A method without a case (apart_cases.py) fails the suite.
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

import grpc
import pytest

from kagzi.core.access import Scope
from kagzi.core.limits import Settings
from kagzi.server.config import AUTH_KEYS
from kagzi.v1 import worker_pb2
from tests.server.apart_cases import CASES
from tests.server.apart_world import (
    METHODS,
    NOTHING,
    SECRET,
    THEIRS,
    Answer,
    Caller,
    admin,
    furnish,
    picture,
    workers,
    workflows,
)
from tests.server.conftest import StartServer
from tests.server.keys import a_key, first_key

# Nothing ends or is swept by itself while a test looks.
STILL = Settings(lease_ms=600_000, heartbeat_ms=60_000, poll_interval_ms=600_000, housekeeping_ms=3_600_000)

# Not about anything in a namespace.
NAMELESS = {admin("HealthCheck"), admin("GetServerInfo")}
# For whoever looks after namespaces: they are what these are about. test_namespaces.py.
ABOUT_NAMESPACES = {path for path in METHODS if path.startswith("/kagzi.v1.NamespaceService/")}
ABOUT_KEYS = {path for path in METHODS if path.startswith("/kagzi.v1.KeyService/")}  # test_access.py
IMPORT = workflows("ImportWorkflow")  # test_imports_apart.py


def test_every_method_has_a_case() -> None:
    left_out = NAMELESS | ABOUT_NAMESPACES | ABOUT_KEYS
    assert set(CASES) | {IMPORT} == set(METHODS) - left_out
    assert not (set(CASES) | {IMPORT}) & left_out
    for path in NAMELESS:
        assert "namespace_id" not in METHODS[path].input_type.fields_by_name, path


class Callers(NamedTuple):
    theirs: Caller
    operator: Caller


@pytest.fixture
async def callers(start_server: StartServer, database_url: str) -> AsyncIterator[Callers]:
    key = await first_key(database_url)
    server = await start_server(database_url, settings=STILL, auth=AUTH_KEYS)
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        operator = Caller(channel, key)
        _, theirs = await a_key(operator, THEIRS, [Scope.ADMIN])
        caller = operator.with_key(theirs)
        await caller.one(
            workers("Register"),
            worker_pb2.RegisterRequest(
                namespace_id=THEIRS, workflow_types=["their-type"], worker_id="their-worker", max_concurrent=1
            ),
        )
        yield Callers(caller, operator)


async def test_what_is_not_ours_does_not_exist(callers: Callers, database_url: str) -> None:
    """Also to whoever has a key of their own that may do everything in their namespace."""
    caller = callers.theirs
    ours = await furnish(callers.operator)
    before = await picture(database_url)
    assert {table for table, rows in before.items() if rows} >= {
        "runs",
        "steps",
        "workers",
        "schedules",
        "bulk_operations",
        "workflow_versions",
        "run_labels",
    }
    wrong: list[str] = []
    numbered = [(path, number, each) for path, cases in CASES.items() for number, each in enumerate(cases)]
    # What makes something in their own namespace comes last: it would be found there.
    for path, number, each in sorted(numbered, key=lambda case: case[2].new):
        nothing = await caller.ask_and_check(NOTHING, path, *each.ask(NOTHING), until=each.until)
        foreign = await caller.ask_and_check(ours, path, *each.ask(ours), until=each.until)
        name = f"{path.rpartition('/')[2]} {number}"
        if not nothing.code == foreign.code == each.code:
            wrong.append(f"{name}: {nothing.code} of nothing, {foreign.code} of ours: {foreign.text}")
        if not each.new and sorted(nothing.text.splitlines()) != sorted(foreign.text.splitlines()):
            wrong.append(f"{name}: of nothing\n{nothing.text}\nof ours\n{foreign.text}")
        if SECRET in foreign.text or (each.new and ("<ended_run>" in foreign.text or "<run_id>" in run_ids(foreign))):
            wrong.append(f"{name} tells of ours:\n{foreign.text}")
        after = await picture(database_url)
        if after != before:
            changed = {table for table in before if before[table] != after[table]}
            wrong.append(f"{name} changes ours: {changed}")
            before = after
    assert not wrong, "\n\n".join(wrong)


def run_ids(answer: Answer) -> str:
    """What was started in their namespace is none of ours."""
    return "\n".join(str(getattr(message, "run_id", "")) for message in answer.messages)
