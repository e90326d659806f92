"""What is logged in steps and workflows says where it comes from; elsewhere nothing is added."""

import asyncio
import logging
from collections.abc import Iterator

import pytest

from kagzi import RunContextFilter
from kagzi.core.run.addresses import LAST_SERVER
from kagzi.sdk.workflow.context import Context
from kagzi.sdk.workflow.decorator import workflow
from kagzi.sdk.workflow.retry import Retry

from .fake import fake_server

log = logging.getLogger("shop")


class Gathering(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, logging.LogRecord] = {}
        self.addFilter(RunContextFilter())

    def emit(self, record: logging.LogRecord) -> None:
        self.records[record.getMessage()] = record

    def where(self, message: str) -> tuple[str | None, ...]:
        facts = vars(self.records[message])
        return tuple(facts.get(name) for name in ("workflow_type", "workflow_id", "run_id", "step", "attempt"))


@pytest.fixture(autouse=True)
def no_server_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests of this process were connected to: lines of runs name their page on it."""
    monkeypatch.setattr(LAST_SERVER, "http_url", "")


@pytest.fixture
def gathered() -> Iterator[Gathering]:
    handler = Gathering()
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    yield handler
    logging.getLogger().removeHandler(handler)
    logging.getLogger().setLevel(logging.WARNING)


async def test_records_of_any_logger_name_their_run_step_and_attempt(gathered: Gathering) -> None:
    tries: list[int] = []

    def in_thread() -> None:
        tries.append(1)
        log.info("thread %d", len(tries))
        if len(tries) == 1:
            raise OSError

    async def on_loop(ctx: Context) -> None:
        log.info("loop")
        ctx.log.info("run's own, in a step")
        await asyncio.gather(say("task of a step"))

    async def say(text: str) -> None:
        log.info(text)  # noqa: G004, RUF100  a plain text

    @workflow
    async def w(ctx: Context) -> None:
        log.info("body")
        ctx.log.info("run's own")
        await asyncio.gather(say("task of a body"))
        await ctx.step("thread", retry=Retry.fixed(2, "1ms")).run(in_thread)
        await ctx.step("loop").run(on_loop, ctx)

    log.info("before")
    async with fake_server(w) as server:
        run = await server.run(w)
    log.info("after")
    here = ("w", "wid", run.run_id)
    for message in ("body", "run's own", "task of a body"):
        assert gathered.where(message) == (*here, None, None), message
    for message in ("loop", "run's own, in a step", "task of a step"):
        assert gathered.where(message) == (*here, "loop", 1), message
    assert gathered.where("thread 1") == (*here, "thread", 1)
    assert gathered.where("thread 2") == (*here, "thread", 2)
    for message in ("before", "after"):
        assert gathered.where(message) == (None,) * 5
