"""The last lines that steps logged: appended, bounded, apart from other namespaces, gone with the run."""

from kagzi.core.limits import STEP_LOG_BYTES, STEP_LOG_LINES
from kagzi.core.pages.cursor import Cursor
from kagzi.core.records import RunKey
from kagzi.core.run.step_logs import LogLine, StepLog, StepLogLines

from .verbs import StoreHarness, begin, complete_run


def lines(*texts: str, attempt: int = 1) -> tuple[LogLine, ...]:
    return tuple(LogLine(at, attempt, "INFO", text) for at, text in enumerate(texts))


async def kept(harness: StoreHarness, run: RunKey, step_id: str | None = None) -> list[StepLog]:
    rows = await harness.store.list_step_logs(run, step_id=step_id, cursor=None, limit=100)
    assert rows is not None
    return list(rows.rows)


async def test_lines_are_appended_by_step(harness: StoreHarness) -> None:
    run = (await harness.running()).run
    sealed = LogLine(9, 2, "ERROR", sealed=b"\x00\xff", metadata={"encoding": "aes"})
    await harness.store.add_step_logs(
        [StepLogLines(run, "b", lines("one")), StepLogLines(run, "a", lines("über"), dropped=3)]
    )
    await harness.store.add_step_logs([StepLogLines(run, "b", (*lines("two"), sealed))])
    assert await kept(harness, run) == [
        StepLog("a", lines("über"), 3),
        StepLog("b", (*lines("one"), *lines("two"), sealed), 0),
    ]
    assert [log.step_id for log in await kept(harness, run, "b")] == ["b"]
    page = await harness.store.list_step_logs(run, step_id=None, cursor=Cursor(0, "a"), limit=100)
    assert page is not None
    assert [log.step_id for log in page.rows] == ["b"]


async def test_the_last_lines_are_kept_and_the_others_counted(harness: StoreHarness) -> None:
    run = (await harness.running()).run
    texts = [str(number) for number in range(STEP_LOG_LINES)]
    await harness.store.add_step_logs([StepLogLines(run, "s", lines(*texts))])
    await harness.store.add_step_logs([StepLogLines(run, "s", lines("last"))])
    (log,) = await kept(harness, run)
    assert (len(log.lines), log.lines[0].text, log.lines[-1].text, log.dropped) == (STEP_LOG_LINES, "1", "last", 1)
    half = "x" * (STEP_LOG_BYTES // 2)
    await harness.store.add_step_logs([StepLogLines(run, "s", lines(half, half, "end"))])
    (log,) = await kept(harness, run)
    assert [len(line.text) for line in log.lines] == [len(half), 3]


async def test_lines_of_runs_that_are_not_there_are_ignored(harness: StoreHarness) -> None:
    run = (await harness.running()).run
    foreign = RunKey("elsewhere", run.run_id)
    unknown = RunKey("default", "0191e000-0000-7000-8000-00000000000a")
    added = [StepLogLines(key, "s", lines("x")) for key in (foreign, unknown, RunKey("default", "no id"))]
    await harness.store.add_step_logs(added)
    assert await kept(harness, run) == []
    for key in (foreign, unknown, RunKey("default", "no id")):
        assert await harness.store.list_step_logs(key, step_id=None, cursor=None, limit=10) is None


async def test_they_go_with_their_run(harness: StoreHarness) -> None:
    holding = await harness.running()
    await harness.do(begin(holding, "s"))
    await harness.store.add_step_logs([StepLogLines(holding.run, "s", lines("x"))])
    await harness.do(complete_run(holding))
    deleted = await harness.store.delete_runs("default", [holding.run.run_id], until=harness.now)
    assert list(deleted) == [holding.run.run_id]
    await harness.store.add_step_logs([StepLogLines(holding.run, "s", lines("late"))])
    assert await harness.store.list_step_logs(holding.run, step_id=None, cursor=None, limit=10) is None
    again = await harness.running()
    assert await kept(harness, again.run) == []
