"""Every example of the repository survives a crash at every boundary."""

from typing import Any

import pytest

from examples import (
    e00_min,
    e01_hello,
    e02_order,
    e03_parallel,
    e04_race,
    e05_approval,
    e06_child,
    e07_agent,
    e08_schedule,
)
from kagzi import Signal, Workflow
from kagzi.testing import TestEnv
from tests.support.timeouts import LOADED_MACHINE_S

Signals = list[tuple[Signal[Any] | str, Any]]
EXPENSE = e05_approval.Expense(id="e1", amount=5)
ORDER = e02_order.OrderInput(user_id=1, items=["a"], total=9.5)
EXAMPLES: list[tuple[Workflow[Any, Any], Any, Signals, Any]] = [
    (e00_min.hello, "world", [], "HELLO, WORLD!"),
    (e01_hello.hello, "world", [], "HELLO, WORLD!"),
    (e02_order.process_order, ORDER, [], e02_order.OrderOutput(order_id="tx-1-48", status="completed")),
    (e03_parallel.build_profile, "u1", [], e03_parallel.Profile(user="user-u1", orders=[1, 2, 3], score=8.7)),
    (e04_race.best_quote, "berlin", [], e04_race.Quote(carrier="ups", price=7)),
    (e04_race.who_won, "berlin", [], "dhl"),
    (e05_approval.approve_expense, EXPENSE, [(e05_approval.decision, {"approved": True, "by": "ada"})], "paid"),
    (e05_approval.approve_expense, EXPENSE, [], "expired"),
    (e06_child.publish_album, ["a", "b", "c"], [], ["a?small", "b?small", "c?small"]),
    (e07_agent.support_agent, e07_agent.Task(goal="refund me"), [(e07_agent.approved, True)], "done, refunded"),
    (e08_schedule.generate_report, e08_schedule.ReportConfig(team="x"), [], 42),
]


async def late_quote(carrier: str, _: float) -> e04_race.Quote:
    return await e04_race.ask(carrier, LOADED_MACHINE_S)


@pytest.mark.parametrize(
    ("workflow", "input", "signals", "result"),
    EXAMPLES,
    ids=[f"{each[0].fn.__module__}-{each[3]}" for each in EXAMPLES],
)
async def test_it_survives(
    kagzi_env: TestEnv, workflow: Workflow[Any, Any], input: Any, signals: Signals, result: Any
) -> None:
    kagzi_env.mock("ask-dhl", calls=late_quote)  # who is first must not depend on how busy the machine is
    report = await kagzi_env.crash_everywhere(workflow, input, signals=signals)
    assert report.ok
    assert not report.skipped
    assert report.result == result
    assert report.kills >= len(report.boundaries) > 5  # each of them was hit
    assert report.runs <= len(report.boundaries) + 5  # linear in them
