"""Schedules that programs declare have an owner, who is told what is no longer declared."""

import logging

import pytest

from kagzi import Context, DeclaredSchedule, Kagzi, PreconditionFailed, Worker, schedule, workflow
from kagzi.server.app import Server


@workflow
async def report(ctx: Context) -> None: ...


def daily(id: str, hour: int = 6) -> DeclaredSchedule:
    return schedule(id, workflow=report, cron=f"0 {hour} * * *")


async def states(client: Kagzi) -> dict[str, tuple[str, bool]]:
    return {each.id: (each.owner, each.paused) async for each in client.schedules.list()}


async def test_what_is_no_longer_declared_is_reported_and_pruned_only_if_asked(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        await client.schedule("by-hand").workflow(report).cron("0 1 * * *")
        first = await client.schedules.sync([daily("a"), daily("b")], owner="billing")
        assert ([each.id for each in first.declared], first.removed) == (["a", "b"], ())
        other = await client.schedules.sync([daily("c")], owner="shipping", prune="delete")
        assert other.removed == ()

        with caplog.at_level(logging.WARNING, "kagzi.client"):
            second = await client.schedules.sync([daily("a", 7)], owner="billing")
        assert [each.id for each in second.removed] == ["b"]
        assert "schedule 'b' is no longer declared by 'billing', and still starts runs" in caplog.text
        assert await states(client) == {
            "a": ("billing", False),
            "b": ("billing", False),
            "c": ("shipping", False),
            "by-hand": ("", False),
        }
        assert (await client.schedules.get("a")).cron_expr == "0 7 * * *"

        paused = await client.schedules.sync([daily("a", 7)], owner="billing", prune="pause")
        assert [(each.id, each.paused, each.paused_reason) for each in paused.removed] == [
            ("b", True, "no longer declared by billing")
        ]
        deleted = await client.schedules.sync([daily("a", 7)], owner="billing", prune="delete")
        assert [each.id for each in deleted.removed] == ["b"]
        assert set(await states(client)) == {"a", "c", "by-hand"}


async def test_a_schedule_has_one_owner_who_stays_until_it_is_given_away(server: Server) -> None:
    async with Kagzi.connect(server.grpc_address) as client:
        await client.schedules.sync([daily("a")], owner="billing")
        with pytest.raises(PreconditionFailed, match="schedule 'a' belongs to owner 'billing'"):
            await client.schedules.sync([daily("b"), daily("a")], owner="shipping")
        assert set(await states(client)) == {"a"}
        await client.schedule("a").workflow(report).cron("0 9 * * *")  # by whoever: the owner stays
        assert await states(client) == {"a": ("billing", False)}
        await client.schedules.update("a", owner="shipping")
        await client.schedules.sync([daily("a")], owner="shipping")
        assert await states(client) == {"a": ("shipping", False)}
        await client.schedules.update("a", owner="")
        assert await states(client) == {"a": ("", False)}


async def test_a_worker_says_whose_its_schedules_are(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(
        server.grpc_address, workflows=[report], schedules=[daily("a"), daily("b")], schedules_owner="billing"
    )
    async with Kagzi.connect(server.grpc_address) as client:
        async with worker:
            assert await states(client) == {"a": ("billing", False), "b": ("billing", False)}
        with caplog.at_level(logging.WARNING, "kagzi.client"):
            async with worker.schedules([]):
                assert set(await states(client)) == {"a", "b"}
        assert caplog.text.count("no longer declared by 'billing'") == 2
