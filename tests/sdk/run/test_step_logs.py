"""What the bodies of steps log is gathered within bounds, in whichever thread, and nothing else is."""

import asyncio
import logging
import threading
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any, cast

import msgspec
import pytest

from kagzi.core.limits import STEP_LOG_LINE_BYTES, STEP_LOG_LINES, STEP_LOGS_WAITING_BYTES
from kagzi.sdk.step_logs.collector import StepLogCollector
from kagzi.sdk.step_logs.records import unwatch_records, watch_records
from kagzi.sdk.step_logs.sender import StepLogSender
from kagzi.sdk.transport.payload_codec import MessageCodec
from kagzi.sdk.workflow.current import StepInfo, place
from tests.support.timeouts import LOADED_MACHINE_S

logger = logging.getLogger("tests.step_logs")
logger.setLevel(logging.INFO)


class Gathering:
    """A worker, as far as logging is concerned."""

    def __init__(self) -> None:
        self.notifications = 0
        self.collector = self.step_logs = StepLogCollector()
        self.collector.on_lines = self._notified
        self.services = self

    def _notified(self) -> None:
        self.notifications += 1

    def __enter__(self) -> "Gathering":
        watch_records()
        return self

    def __exit__(self, *_: object) -> None:
        unwatch_records()

    def taken(self) -> dict[str, list[str]]:
        return {
            log.step_id: [msgspec.json.decode(line.text.data) for line in log.lines] for log in self.collector.take()
        }


def in_step(worker: Any, step_id: str, text: str, *, attempt: int = 1, count: int = 1) -> None:
    def body() -> None:
        place.set(StepInfo("run-1", step_id, attempt, worker))
        for _ in range(count):
            logger.info("%s", text)

    copy_context().run(body)


def test_lines_of_steps_and_only_those() -> None:
    with Gathering() as gathering:
        logger.info("outside")
        in_step(gathering, "a", "one")
        thread = threading.Thread(target=in_step, args=(gathering, "a", "two"))
        thread.start()
        thread.join()
        in_step(gathering, "b", "three", attempt=2)
        logger.debug("not enabled")
        assert gathering.notifications == 1  # the sender needs to hear of it once
        (first, second) = gathering.collector.take()
        assert [(line.level, line.attempt) for line in second.lines] == [("INFO", 2)]
        assert (first.run_id, first.step_id, len(first.lines)) == ("run-1", "a", 2)
        assert gathering.collector.is_empty
        in_step(gathering, "a", "four")
        assert (gathering.notifications, gathering.taken()) == (2, {"a": ["four"]})


def test_each_worker_gets_the_lines_of_its_own_steps_and_logging_is_left_as_it_was() -> None:
    factory, handlers = logging.getLogRecordFactory(), list(logging.getLogger().handlers)
    with Gathering() as one, Gathering() as other:
        in_step(one, "a", "mine")
        in_step(other, "b", "yours")
        in_step(None, "c", "nobody's")
        assert (one.taken(), other.taken()) == ({"a": ["mine"]}, {"b": ["yours"]})
        assert logging.getLogger().handlers == handlers
    assert logging.getLogRecordFactory() is factory
    in_step(one, "a", "late")
    assert one.collector.is_empty


def test_an_exception_is_part_of_its_line_and_a_long_line_is_cut() -> None:
    with Gathering() as gathering:

        def body() -> None:
            place.set(StepInfo("run-1", "a", 1, cast("Any", gathering)))
            try:
                raise ValueError("why")
            except ValueError:
                logger.exception("it failed")
            logger.info("x" * 10_000)

        copy_context().run(body)
        (traceback, long) = gathering.taken()["a"]
    assert traceback.startswith("it failed\nTraceback")
    assert traceback.endswith("ValueError: why")
    assert len(long) == STEP_LOG_LINE_BYTES


def test_what_waits_is_bounded_and_what_is_dropped_is_counted() -> None:
    with Gathering() as gathering:
        in_step(gathering, "many", "x", count=STEP_LOG_LINES + 5)
        for number in range(STEP_LOGS_WAITING_BYTES // STEP_LOG_LINE_BYTES + 10):
            in_step(gathering, f"s{number}", "y" * STEP_LOG_LINE_BYTES)
        logs = gathering.collector.take()
        assert (logs[0].step_id, len(logs[0].lines), logs[0].dropped) == ("many", STEP_LOG_LINES, 5)
        while not gathering.collector.is_empty:
            logs += gathering.collector.take()
        assert sum(log.dropped for log in logs[1:]) == 11
        assert sum(len(log.lines) for log in logs[1:]) == STEP_LOGS_WAITING_BYTES // STEP_LOG_LINE_BYTES - 1


async def test_lines_are_sent_once_in_a_while_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kagzi.sdk.step_logs.sender.SENT_EVERY_S", 0.01)
    sent: asyncio.Queue[list[str]] = asyncio.Queue()

    gathering = Gathering()

    def report() -> None:
        sent.put_nowait([log.step_id for log in gathering.collector.take()])

    sender = StepLogSender(report, gathering.collector)
    sender.start()
    try:
        await asyncio.to_thread(in_step, gathering, "a", "one")
        async with asyncio.timeout(LOADED_MACHINE_S):
            assert await sent.get() == ["a"]
        monkeypatch.setattr("kagzi.sdk.step_logs.sender.SENT_EVERY_S", 600)
        in_step(gathering, "b", "two")
        sender.flush()
        assert sent.get_nowait() == ["b"]
    finally:
        sender.stop()
    in_step(gathering, "c", "three")
    sender.flush()
    assert sent.empty()


def test_a_codec_sees_every_line_and_one_that_it_cannot_encode_is_dropped() -> None:
    class Reversing:
        def encode(self, data: bytes) -> tuple[bytes, dict[str, str]]:
            if b"unspeakable" in data:
                raise RuntimeError("no key")
            return data[::-1], {"encoding": "reversed"}

        def decode(self, data: bytes, metadata: Mapping[str, str]) -> bytes:
            raise NotImplementedError

    with Gathering() as gathering:
        gathering.collector.codec = MessageCodec(Reversing())
        in_step(gathering, "a", "secret")
        in_step(gathering, "a", "unspeakable")
        (log,) = gathering.collector.take()
    assert [line.text.data for line in log.lines] == [b'"terces"']
    assert log.lines[0].text.metadata["encoding"] == "reversed"
    assert log.dropped == 1
