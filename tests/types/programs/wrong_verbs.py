# every line marked E must be an error
from kagzi import Context, Kagzi, Worker, workflow
from examples.e01_hello import hello
from examples.e05_approval import Decision, Expense, approve_expense, decision


async def client_side(client: Kagzi, expense: Expense) -> None:
    await client.signal("x", decision, "yes")  # E1 wrong payload
    await client.signal("x", decision)  # E2 payload missing
    await client.signal_with_start(approve_expense, "oops", decision, Decision(approved=True, by="a"), id="x")  # E3
    await client.signal_with_start(approve_expense, expense, decision, Decision(approved=True, by="a"))  # E4 whose?
    await client.start_many([hello])  # E5 no start
    await client.get("x", hello).fork(outputs=3)  # E6 by step id
    client.pause("x")  # E7 not awaited


@workflow
async def misuses(ctx: Context) -> None:
    await ctx.step("charge")  # E8 no function
    hello("ada")  # E9 a workflow is not called
    Kagzi.connect().start(hello, "ada")  # E10 not awaited: no client


async def worker_side(worker: Worker) -> None:
    worker.version(2)  # E11 a text
    worker.build().run()  # E12 not awaited
