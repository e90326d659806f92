"""Imports see nothing of other namespaces: whatever id a file claims or names, what comes of it is what would come of
an id that nobody has, and nothing of ours changes.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from kagzi.core.records import Payload
from kagzi.core.states import RunStatus, StepKind, StepStatus, WaitReason
from kagzi.core.transfers.images import (
    End,
    LinkImage,
    RunImage,
    StepImage,
    write_data,
    write_end_line,
    write_part_line,
    write_run_line,
)
from kagzi.v1 import admin_pb2, worker_pb2, workflow_pb2
from tests.server.apart_world import (
    NOTHING,
    OURS,
    SECRET,
    THEIRS,
    Caller,
    Names,
    admin,
    furnish,
    picture,
    workers,
    workflows,
)
from tests.server.conftest import StartServer
from tests.server.stubs import json_payload
from tests.server.test_namespaces_apart import IMPORT, STILL

AT = 1_790_000_000_000_000
RUN_ID = "01a00000-0000-7000-8000-0000000000{:02}"
FORGED = write_data(Payload(b'"forged"'))


@pytest.fixture
async def caller(start_server: StartServer, database_url: str) -> AsyncIterator[Caller]:
    server = await start_server(database_url, settings=STILL)
    async with grpc.aio.insecure_channel(server.grpc_address) as channel:
        yield Caller(channel)


def run(number: int, **fields: Any) -> RunImage:
    """One that sleeps until a child has ended."""
    waiting = {"status": RunStatus.SLEEPING, "wait_reason": WaitReason.CHILD}
    identity = {"workflow_id": f"forged-{number}", "workflow_type": "their-type", "request_id": f"forged-{number}"}
    return RunImage(
        **{"run_id": RUN_ID.format(number), "created_at": AT, "last_seq": 1, **identity, **waiting, **fields}
    )


def child_step(child_run_id: str) -> StepImage:
    return StepImage(
        step_id="kid",
        name="kid",
        kind=StepKind.CHILD,
        status=StepStatus.RUNNING,
        begun_seq=1,
        created_at=AT,
        started_at=AT,
        child_run_id=child_run_id,
    )


def lines(image: RunImage, *parts: StepImage | LinkImage) -> bytes:
    counts = [sum(isinstance(part, kind) for part in parts) for kind in (StepImage, LinkImage)]
    end = End(steps=counts[0], attempts=0, signals=0, links=counts[1])
    return b"".join([write_run_line(image), *map(write_part_line, parts), write_end_line(end)])


async def brought(caller: Caller, data: bytes) -> str:
    answer = await caller.one(IMPORT, workflow_pb2.ImportWorkflowRequest(namespace_id=THEIRS, json=data))
    assert not answer.already_exists
    return answer.run_id


async def seen(caller: Caller, run_id: str, foreign: str) -> str:
    """All that they can see of a run of theirs, without the ids that they know."""
    texts: list[str] = []
    for path, request in (
        (workflows("GetWorkflow"), workflow_pb2.GetWorkflowRequest(namespace_id=THEIRS, run_id=run_id)),
        (admin("ListSteps"), admin_pb2.ListStepsRequest(namespace_id=THEIRS, run_id=run_id, include_payloads=True)),
        (workflows("ExplainWorkflow"), workflow_pb2.ExplainWorkflowRequest(namespace_id=THEIRS, run_id=run_id)),
        (workflows("ExportWorkflow"), workflow_pb2.ExportWorkflowRequest(namespace_id=THEIRS, run_id=run_id)),
    ):
        code, details, received = await caller.ask(path, request)
        texts += [str(code), details, *map(str, received)]
    text = "\n".join(texts)
    assert SECRET not in text
    assert foreign not in text, "a foreign id is told as if it were theirs"
    return text


def shape(text: str) -> str:
    """Without ids, numbers and times, and what a chore does meanwhile: what is left must be the same for every id."""
    text = text.replace(',\\"cascade_due\\":true', "")
    for known in "0123456789abcdef":
        text = text.replace(known, "")
    return text.replace("-", "")


async def complete(caller: Caller, ours: Names) -> None:
    await caller.one(
        workers("CompleteWorkflow"),
        worker_pb2.CompleteWorkflowRequest(
            namespace_id=OURS, run_id=ours.run_id, lease=ours.lease, output=json_payload(f'"{SECRET}"')
        ),
    )


def forgeries(foreign: str, first: int = 1) -> dict[str, bytes]:
    """By what they hope for, each naming this id. `first`: the number of the first, of seven."""
    return {
        "the result of a child": lines(run(first + 0), child_step(foreign)),
        "the result of a run it attached to": lines(
            run(first + 1), child_step(foreign), LinkImage(step_id="kid", child_run_id=foreign)
        ),
        "the end of a blocker": lines(run(first + 2, last_seq=0, blocked_by=foreign)),
        "a parent to be told": lines(
            run(
                first + 3,
                status=RunStatus.COMPLETED,
                wait_reason=None,
                finished_at=AT,
                watched=True,
                parent_run_id=foreign,
                parent_step_id="our-step",
                last_seq=0,
                output=FORGED,
            )
        ),
        "children to be cancelled": lines(
            run(first + 4, has_children=True, cascade_due=True, parent_run_id=foreign, parent_step_id="our-step"),
            child_step(foreign),
        ),
        "a successor": lines(
            run(
                first + 5,
                status=RunStatus.COMPLETED,
                wait_reason=None,
                finished_at=AT,
                continued_as=foreign,
                last_seq=0,
            )
        ),
        "a fork": lines(run(first + 6, forked_from=foreign), child_step(foreign)),
    }


async def test_what_they_name_of_ours_is_what_they_name_of_nobodys(caller: Caller, database_url: str) -> None:
    """Of a run that runs, and of one that has ended."""
    ours = await furnish(caller)
    before = await picture(database_url)
    for first, foreign, nobodys in ((1, ours.run_id, NOTHING.run_id), (21, ours.ended_run, NOTHING.ended_run)):
        for hope, forged in forgeries(foreign, first).items():
            run_id = await brought(caller, forged)
            text = await seen(caller, run_id, foreign)
            nothing = await brought(caller, forgeries(nobodys, first + 40)[hope])
            assert shape(text) == shape(await seen(caller, nothing, nobodys)), hope
            assert await picture(database_url) == before, hope


async def test_the_end_of_ours_wakes_none_of_theirs(caller: Caller) -> None:
    """They wait for what they named, for ever: it never ends, since it is not there."""
    ours = await furnish(caller)
    waiting = {
        await brought(caller, forged)
        for hope, forged in forgeries(ours.run_id).items()
        if hope in ("the result of a child", "the result of a run it attached to")
    }
    before = {run_id: await seen(caller, run_id, ours.run_id) for run_id in waiting}
    await complete(caller, ours)
    assert {run_id: await seen(caller, run_id, ours.run_id) for run_id in waiting} == before


async def test_an_id_of_ours_is_as_free_as_any_other(caller: Caller, database_url: str) -> None:
    ours = await furnish(caller)
    before = await picture(database_url)
    for first, foreign, nobodys in ((10, ours.run_id, NOTHING.run_id), (20, ours.ended_run, NOTHING.ended_run)):
        shapes: list[str] = []
        for number, claimed in enumerate((foreign, nobodys), first):
            data = lines(run(number, run_id=claimed), child_step(RUN_ID.format(99)))
            request = workflow_pb2.ImportWorkflowRequest(namespace_id=THEIRS, json=data)
            new, again = await caller.one(IMPORT, request), await caller.one(IMPORT, request)
            assert (new.already_exists, again.already_exists) == (False, True)
            assert again.run_id == new.run_id != claimed
            shapes.append(shape(await seen(caller, new.run_id, claimed)))
        assert shapes[0] == shapes[1]
    assert await picture(database_url) == before


async def test_what_was_exported_of_ours_comes_in_as_theirs(caller: Caller, database_url: str) -> None:
    """A file with everything of ours in it may be read; the run that it makes is another one."""
    ours = await furnish(caller)
    before = await picture(database_url)
    assert json.loads(ours.export.splitlines()[0])["run"]["run_id"] == ours.ended_run
    answer = await caller.one(IMPORT, workflow_pb2.ImportWorkflowRequest(namespace_id=THEIRS, json=ours.export))
    assert not answer.already_exists
    assert answer.run_id != ours.ended_run
    imported = await caller.one(
        workflows("GetWorkflow"), workflow_pb2.GetWorkflowRequest(namespace_id=THEIRS, run_id=answer.run_id)
    )
    assert imported.workflow.workflow_id == "our-ended-id"
    assert await picture(database_url) == before
