"""What the watchdog sees of sync steps: who waits for a thread, who holds the GIL; and that nothing is reported all the
time."""

import asyncio
import hashlib
import threading
import time
from contextlib import closing
from contextvars import copy_context

import pytest

from kagzi import Context, InvalidArgument, Worker, workflow
from kagzi.sdk.execution.calls.threads import Busy, Spent, StepThreads
from kagzi.sdk.worker import gil_contention
from kagzi.sdk.worker.diagnostics import Diagnostics
from kagzi.sdk.worker.gil_contention import GilWatch
from tests.support.timeouts import LOADED_MACHINE_S

WAIT_S = LOADED_MACHINE_S


@workflow
async def nothing(ctx: Context) -> None: ...


def test_each_kind_is_reported_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    reported: list[int] = []
    diagnostics = Diagnostics()
    diagnostics.on_report = lambda: reported.append(1)
    assert diagnostics.report("threads_full", "one")
    assert not diagnostics.report("threads_full", "two")
    assert diagnostics.report("loop_blocked", "three")
    assert [trouble.detail for trouble in diagnostics.take()] == ["one", "three"]
    assert diagnostics.take() == []
    assert reported == [1, 1]
    assert "two" not in caplog.text


def test_it_is_said_again_later_and_what_was_not_sent_is_kept() -> None:
    diagnostics = Diagnostics(repeat_s=0.0)
    diagnostics.report("threads_full", "one")
    taken = diagnostics.take()
    diagnostics.report("threads_full", "two")
    diagnostics.put_back(taken)
    assert [trouble.detail for trouble in diagnostics.take()] == ["one", "two"]


async def test_who_waits_for_a_thread_is_counted_and_who_holds_them_is_named() -> None:
    threads, latch, begun = StepThreads(2), threading.Event(), threading.Semaphore(0)

    def body() -> None:
        begun.release()
        latch.wait(WAIT_S)

    jobs = [threads.begin(body, copy_context(), report_start=False, step=f"s{number}") for number in range(5)]
    for _ in range(2):
        assert await asyncio.to_thread(begun.acquire, timeout=WAIT_S)
    crowd = threads.crowd()
    assert crowd is not None
    assert crowd.waiting == 3
    assert {busy.step for busy in crowd.busy} == {"s0", "s1"}
    assert crowd.oldest_at == jobs[2].queued_at
    jobs[2].done.cancel()  # nobody waits for it any more
    crowd = threads.crowd()
    assert crowd is not None
    assert crowd.waiting == 2
    latch.set()
    await asyncio.wait([job.done for job in jobs], timeout=WAIT_S)
    assert threads.crowd() is None


def reports_during(watch: GilWatch, body: threading.Thread, busy: list[Busy]) -> list[str]:
    """What is said while the body runs."""
    reports: list[str] = []
    pause, polled_at = threading.Event(), time.monotonic()
    while body.is_alive():
        pause.wait(0.05)
        elapsed_s = time.monotonic() - polled_at
        report = watch.poll(tuple(busy), (), elapsed_s=elapsed_s, late_s=0.0)
        if report is not None:
            reports.append(report)
        polled_at = time.monotonic()
    return reports


def hashing(end: float) -> None:
    digest, block = hashlib.sha256(), b"x" * 20_000_000
    while time.monotonic() < end:
        digest.update(block)


def waiting(end: float) -> None:
    threading.Event().wait(end - time.monotonic())


@pytest.mark.parametrize("body", [hashing, waiting])
def test_a_step_that_lets_go_of_the_interpreter_is_not_blamed(body: object) -> None:
    busy: list[Busy] = []

    def run() -> None:
        busy.append(Busy(threading.get_ident(), "s", time.monotonic(), time.thread_time()))
        body(time.monotonic() + 0.5)  # type: ignore[operator]
        busy.clear()

    thread = threading.Thread(target=run)
    thread.start()
    with closing(GilWatch(0.1)) as watch:
        assert reports_during(watch, thread, busy) == []


@pytest.mark.parametrize(("in_line_s", "reported"), [(0.0, True), (0.65, False)])
def test_a_step_is_not_blamed_while_the_event_loop_waits_for_a_processor(
    monkeypatch: pytest.MonkeyPatch, in_line_s: float, *, reported: bool
) -> None:
    """The loop's thread may hold the GIL then, and a step computes beside it."""
    loop_thread = threading.get_native_id()

    def since_last_s(line: gil_contention._Line) -> float:
        return in_line_s if str(loop_thread) in line.path.parts else 0.0

    monkeypatch.setattr(gil_contention._Line, "since_last_s", since_last_s)
    body = Busy(threading.get_ident(), "s", time.monotonic(), 0.0)
    with closing(GilWatch(0.1, loop_thread)) as watch:
        report = watch.poll((), [Spent(body, 100.0)], elapsed_s=1.7, late_s=0.7)
    assert (report is not None) is reported


def test_threads_are_as_many_as_runs_unless_told_otherwise() -> None:
    assert Worker(workflows=[nothing], max_concurrent=7)._options.threads is None
    assert Worker(workflows=[nothing], threads=3)._options.threads == 3
    assert Worker(workflows=[nothing]).threads(4)._options.threads == 4
    for wrong in (0, -1, True, "2", 10_001):
        with pytest.raises(InvalidArgument, match="threads="):
            Worker(workflows=[nothing], threads=wrong)  # type: ignore[arg-type]
