from typing import Any, assert_type

from kagzi import Explanation, Kagzi, Run, RunInfo, Worker
from examples.e01_hello import hello
from examples.e05_approval import Decision, Expense, approve_expense, decision


async def client_side(client: Kagzi, expense: Expense) -> None:
    run = await client.signal_with_start(approve_expense, expense, decision, Decision(approved=True, by="ada"), id="x")
    await run.signal(decision, Decision(approved=True, by="ada"))
    await run.signal("decision", {"approved": True})
    await client.signal("x", decision, Decision(approved=True, by="ada"))
    assert_type(await client.start_many(client.start(hello, each) for each in "abc"), list[Run[str]])
    assert_type(await client.start_many([client.start(hello).input("a")], on_error="collect"), list[Run[str] | Exception])
    assert_type(await client.get("x", hello).fork(from_step="fetch-greeting"), Run[str])
    assert_type(await client.fork("x", from_step="fetch-greeting", outputs={"a": 1}, version=2), Run[Any])
    counted: int = await client.count(workflow=hello, parent=run)
    assert counted >= 0
    assert_type(await client.explain("x"), Explanation)
    assert_type(await run.info(), RunInfo)
    await run.pause("lunch")
    await run.resume()
    await run.retry(from_step="ask")
    await run.terminate("enough")
    assert_type(await client.get("x", hello).namespace("p").result(), str)
    assert_type(await client.get("x", hello).namespace("p"), RunInfo)
    assert_type(await client.get("x"), RunInfo)
    assert_type(await client.get("x", hello, namespace="p").result(), str)
    assert_type(await client.cancel("x").namespace("p"), None)
    place: str = run.namespace
    await client.cancel(place, "enough", namespace=place)


async def worker_side() -> None:
    built = Worker("a:1").hostname("rack-7").version("1.4.2").build_id("b-12").label("team", "a").workflows([hello]).build()
    awaited = assert_type(await built, Worker)
    await awaited.run(handle_signals=False)
    built.stop("5s")
