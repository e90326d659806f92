"""Limits that workflows declare: applied by workers that are asked to, and compared by all others."""

import logging
from typing import Any

import pytest

from kagzi import Context, InvalidArgument, Kagzi, Worker, workflow
from kagzi.server.app import Server


@workflow("limited", limits={"max_running": 5, "starts_per_second_per_key": 0.5, "when_full": "reject"})
async def limited(ctx: Context) -> None: ...


@workflow("limited", version=2, limits={"max_running": 7})
async def other_limits(ctx: Context) -> None: ...


@workflow("limited", version=3)
async def no_limits(ctx: Context) -> None: ...


async def limits_of(client: Kagzi) -> tuple[Any, ...]:
    now = await client.workflow_types.get("limited")
    return now.max_running, now.max_running_per_key, now.starts_per_second_per_key, now.when_full


async def test_they_are_applied_if_asked_and_what_differs_is_logged_otherwise(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    plain = Worker(server.grpc_address, workflows=[limited, no_limits])
    applying = plain.apply_limits()
    async with Kagzi.connect(server.grpc_address) as client:
        with caplog.at_level(logging.WARNING, "kagzi.worker"):
            async with plain:
                assert await limits_of(client) == (None, None, None, "queue")
            assert "'limited': its code declares other limits than the server has: max_running none -> 5" in caplog.text
            assert "kagzi worker --apply-limits" in caplog.text
            await client.workflow_types.update("limited", max_running_per_key=3, max_running=9)
            caplog.clear()
            async with applying:
                assert await limits_of(client) == (5, 3, 0.5, "reject")  # what is not declared stays
            assert "are applied: max_running 9 -> 5" in caplog.text
            caplog.clear()
            for worker in (applying, plain):  # again: nothing to do, nothing to say
                async with worker:
                    assert await limits_of(client) == (5, 3, 0.5, "reject")
            assert "limits" not in caplog.text
            async with Worker(server.grpc_address, workflows=[other_limits]):
                assert await limits_of(client) == (5, 3, 0.5, "reject")
            assert "max_running 5 -> 7" in caplog.text  # two programs that disagree are told


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"max_runing": 5}, "limits"),
        ({"max_running": 0}, "max_running"),
        ({"max_running": 1.5}, "max_running"),
        ({"max_running_per_key": True}, "max_running_per_key"),
        ({"starts_per_second": "many"}, "starts_per_second"),
        ({"starts_per_second": -1}, "starts_per_second"),
        ({"when_full": "explode"}, "when_full"),
    ],
)
def test_what_cannot_be_a_limit_is_refused_where_it_is_declared(limits: Any, field: str) -> None:
    async def flow(ctx: Context) -> None: ...

    with pytest.raises(InvalidArgument) as refused:
        workflow(limits=limits)(flow)
    assert refused.value.field == field


def test_versions_of_a_workflow_declare_the_same_or_nothing() -> None:
    with pytest.raises(InvalidArgument, match="versions of workflow 'limited' declare different limits: max_running"):
        Worker(workflows=[limited, other_limits])
    Worker(workflows=[limited, no_limits])
