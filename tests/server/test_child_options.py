"""Children with labels, a priority and a version of their own."""

from kagzi import Context, Kagzi, Worker, workflow
from kagzi.server.app import Server


@workflow("sized", version=1)
async def small(ctx: Context) -> str:
    return f"small {ctx.version}"


@workflow("sized", version=2)
async def large(ctx: Context) -> str:
    return f"large {ctx.version}"


@workflow
async def parent(ctx: Context) -> list[str]:
    first = await ctx.child(large, version=1, labels={"team": "a"}, priority=7, id="first")
    return [first, await ctx.child(small, id="second")]


async def test_a_child_has_the_labels_priority_and_version_that_it_is_given(server: Server) -> None:
    address = server.grpc_address
    async with Worker(address, workflows=[parent, small, large]), Kagzi.connect(address) as client:
        run = await client.start(parent).labels({"team": "b"}).priority(3)
        assert await run.result() == ["small 1", "large 2"]
        first, second = await client.get("first").info(), await client.get("second").info()
        assert (first.version, first.labels, first.priority, first.parent) == ("1", {"team": "a"}, 7, run.id)
        assert (second.version, second.labels, second.priority) == ("2", {}, 0)
        assert [each.workflow_id async for each in client.list(labels={"team": "a"})] == ["first"]
