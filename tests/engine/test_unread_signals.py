"""A run that ends with unread signals: the server counts and logs them, tells workers of the next run, and explains."""

import logging
from typing import Any

import pytest

from kagzi.core.limits import UNREAD_LOGGED
from kagzi.core.records import Payload, RunKey
from kagzi.core.run.commands import CompleteRun, SendSignal, StartRequest
from kagzi.core.run.handing_on import UnreadEnd
from kagzi.core.states import RunStatus
from kagzi.engine import Engine
from kagzi.engine.background.unread_log import UnreadLog
from tests.engine.fakes import RecordingOutlet, leased, worker
from tests.support.clock import FakeClock


def call(value: str) -> tuple[StartRequest, SendSignal]:
    request = StartRequest(
        namespace="default", workflow_type="hello", workflow_id="cart", request_id=value, input=Payload(b'"in"')
    )
    return request, SendSignal(name="item", payload=Payload(b"1"), request_id="")


def samples(engine: Engine, name: str) -> dict[tuple[str, ...], Any]:
    return dict(engine.measurements.samples()[name])


async def test_the_next_run_is_given_to_a_worker_at_once(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kagzi.engine")
    outlet = RecordingOutlet()
    session = await engine.sessions.open(worker("hello", slots=3), (), outlet)
    for n in range(3):
        await engine.runs.signal_with_start(*call(f"{n}"))
    plain = SendSignal(name="note", payload=Payload(b"2"), request_id="")
    await engine.control.signal("default", workflow_id="cart", signal=plain)
    (first,) = await outlet.until_received(1)
    session.received([leased(first)])
    await session.submit([(1, CompleteRun(run=first.run, lease=first.lease, output=Payload(b"null")))])
    await outlet.answer_to(1)
    _, following = await outlet.until_received(2)
    assert following.workflow_id == "cart"
    ended = await engine.runs.get("default", run_id=first.run.run_id)
    assert (ended.unread_signals, ended.handed_on_to) == (2, following.run.run_id)
    assert samples(engine, "kagzi_signals_unread_total") == {("default", "hello"): 2}
    assert samples(engine, "kagzi_runs_started_total")["default", "hello", "signal"] == 2
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"hello 'cart', run {first.run.run_id} of namespace default, ended with 2 unread signals.")
    explained = await engine.explanations.explain("default", run_id=first.run.run_id)
    assert " It ended with 2 unread signals: item x1, note x1. " in explained.sentence
    assert f"went on to run {following.run.run_id}." in explained.sentence
    assert (explained.facts["unread_signals"], explained.facts["handed_on_to"]) == ("2", following.run.run_id)


async def test_the_timeout_of_the_next_run_is_known_at_once(engine: Engine) -> None:
    request, signal = call("0")
    first = await engine.runs.start(request)
    again = StartRequest(
        namespace="default", workflow_type="hello", workflow_id="cart", request_id="1", timeout_us=60_000_000
    )
    await engine.runs.signal_with_start(again, signal)
    await engine.control.terminate("default", run_id=first.run_id, reason="enough")
    record = await engine.runs.get("default", workflow_id="cart")
    assert (record.status, record.unread_signals) == (RunStatus.PENDING, 1)
    assert record.deadline_at == record.created_at + 60_000_000


def test_of_many_the_first_are_named_and_the_rest_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    log = UnreadLog(clock)
    some = UnreadEnd(run=RunKey("default", "r"), workflow_type="hello", workflow_id="cart", unread=1)
    handed_on = UnreadEnd(run=RunKey("default", "r"), workflow_type="hello", workflow_id="cart", unread=0, handed_on=1)
    for _ in range(50):
        log.write([some, handed_on])
    assert len(caplog.records) == UNREAD_LOGGED
    clock.advance(s=61)
    log.write([some])
    assert caplog.records[-2].getMessage() == f"{50 - UNREAD_LOGGED} more runs ended with unread signals"
    assert len(caplog.records) == UNREAD_LOGGED + 2
