"""What `dev`, `server` and `worker` log: in which form, from which level, and never a line that somebody else wrote."""

import asyncio
import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from kagzi import Context, Kagzi, Retry, Worker, workflow
from kagzi.cli.logs import JsonLines, TextLines, announce, show_logs
from kagzi.cli.main import kagzi as command
from kagzi.cli.settings import default_map
from kagzi.core.duration import parse_duration
from kagzi.core.run.addresses import LAST_SERVER
from kagzi.core.traces.ids import SpanRef
from kagzi.sdk.tracing.references import Entered, Outside
from kagzi.sdk.worker.log_context import RunContextFilter
from kagzi.sdk.workflow.current import StepInfo, place
from tests.support.kagzi_process import kagzi, running

EVIL = "x\n2026-11-16 01:40:12+0000 ERROR   kagzi.engine: forged\r\x1b[2J\u2028\u202e\0\x85"
FLOWS = """
import logging
from kagzi import Context, Retry, workflow

log = logging.getLogger("shop")

def charge(card: str) -> None:
    log.info("charging %s", card)
    raise ConnectionError(f"no line for {card}")

@workflow
async def checkout(ctx: Context, card: str) -> None:
    ctx.log.info("begins")
    await ctx.step("charge", retry=Retry.fixed(2, "1ms")).run(charge, card)
"""


class Log:
    """A logger of its own, and what its handler printed."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        self.handler.setFormatter(formatter)
        self.handler.addFilter(RunContextFilter())
        self.logger = logging.Logger("shop")  # noqa: LOG001  one that no other test knows
        self.logger.addHandler(self.handler)

    @property
    def lines(self) -> list[str]:
        text = self.stream.getvalue()
        assert all(char.isprintable() or char == "\n" for char in text)
        return text.splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture(autouse=True)
def no_server_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests of this process were connected to: lines of runs name their page on it."""
    monkeypatch.setattr(LAST_SERVER, "http_url", "")


@pytest.fixture
def in_a_step() -> Iterator[None]:
    token = place.set(StepInfo("r-1", "charge", 2))
    yield
    place.reset(token)


def say_evil(logger: logging.Logger) -> None:
    logger.error("run %s: %d", EVIL, 7)
    logger.error(EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        logger.exception("incident %s", EVIL)


def test_no_value_makes_a_line_of_its_own_in_text() -> None:
    log = Log(TextLines())
    say_evil(log.logger)
    heads = [line for line in log.lines if not line.startswith("  | ")]
    assert [line.split()[2:5] for line in heads] == [
        ["ERROR", "shop:", "run"],
        ["ERROR", "shop:", "x"],
        ["ERROR", "shop:", "incident"],
    ]
    assert any("ValueError: x" in line for line in log.lines)


def test_json_is_one_object_per_line_whatever_the_message(in_a_step: None) -> None:
    log = Log(JsonLines())
    say_evil(log.logger)
    log.logger.warning("plain", extra={"order": 7, "items": {1}, "step": "mine"})
    first, _, failed, plain = log.objects
    assert first["message"] == f"run {EVIL}: 7"
    assert set(first) == {"time", "level", "logger", "message", "run_id", "step", "attempt"}
    assert (first["level"], first["logger"], first["run_id"], first["step"]) == ("error", "shop", "r-1", "charge")
    assert first["time"].endswith("+00:00")
    assert "ValueError" in failed["exception"]
    assert "in say_evil" in failed["exception"]
    assert (plain["order"], plain["items"], plain["step"]) == (7, "{1}", "mine")


def test_lines_of_a_step_name_it(in_a_step: None) -> None:
    log = Log(TextLines())
    log.logger.info("hello")
    log.logger.info("hello\nworld")
    assert [line.partition("shop: ")[2] for line in log.lines] == [
        "hello [run r-1, step 'charge', attempt 2]",
        "hello [run r-1, step 'charge', attempt 2]",
        "",
    ]
    assert log.lines[2] == "  | world"


async def test_every_line_of_a_step_names_its_namespace_run_step_attempt_and_trace() -> None:
    """In the body, in what it starts, in threads of sync steps; on each attempt."""
    text, objects = Log(TextLines()), Log(JsonLines())
    tries: list[int] = []

    def say(what: str) -> None:
        for log in (text, objects):
            log.logger.info(what)

    def charge() -> None:
        Entered(Outside(SpanRef(0x4BF92F3577B34DA6A3CE929D0E0E4736, 1)))
        say("charging")
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError

    async def ship() -> None:
        say("shipping")
        await asyncio.gather(asyncio.create_task(_soon(say)), asyncio.to_thread(say, "packing"))

    @workflow
    async def order(ctx: Context) -> None:
        await ctx.step("charge", retry=Retry.fixed(2, "1ms")).run(charge)
        await ctx.step("ship").run(ship)

    address = ":memory:"
    async with (
        Worker(address, workflows=[order], namespace="shop"),
        Kagzi.connect(address, namespace="shop") as client,
    ):
        run = await client.start(order, id="order-1")
        await run.result()
    seen = [(one["message"], one["step"], one["attempt"]) for one in objects.objects]
    assert seen[:3] == [("charging", "charge", 1), ("charging", "charge", 2), ("shipping", "ship", 1)]
    assert set(seen[3:]) == {("soon", "ship", 1), ("packing", "ship", 1)}
    for one, line in zip(objects.objects, text.lines, strict=True):
        assert (one["namespace"], one["run_id"], one["workflow_id"]) == ("shop", run.id, "order-1")
        traced = one["message"] == "charging"
        assert one.get("trace_id") == ("4bf92f3577b34da6a3ce929d0e0e4736" if traced else None)
        where = f"[order 'order-1', run {run.id} of namespace shop, step '{one['step']}', attempt {one['attempt']}"
        assert where in line
        assert line.endswith(", trace 4bf92f3577b34da6a3ce929d0e0e4736]" if traced else "]")


async def _soon(say: Callable[[str], None]) -> None:
    say("soon")


@pytest.mark.parametrize("formatter", [TextLines(), JsonLines()], ids=["text", "json"])
def test_of_a_bug_in_kagzi_every_frame_is_shown(formatter: logging.Formatter) -> None:
    log = Log(formatter)
    try:
        parse_duration("soon")
    except ValueError:
        log.logger.exception("incident 7")
    [shown] = ["\n".join(log.lines)]
    assert "in parse_duration" in shown
    assert "hidden" not in shown


def test_outside_of_runs_nothing_is_added() -> None:
    log = Log(TextLines())
    log.logger.info("hello")
    assert log.lines[0].endswith("INFO    shop: hello")


@contextmanager
def a_new_process() -> Iterator[logging.Logger]:
    """The root logger without handlers, and afterwards as it was."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    logger.handlers.clear()
    try:
        yield logger
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def test_a_program_that_has_set_up_logging_keeps_it_unless_a_level_is_named() -> None:
    with a_new_process() as root:
        own = logging.NullHandler()
        root.addHandler(own)
        show_logs(None, None)
        assert root.handlers == [own]
        show_logs("error", None)
        assert (len(root.handlers), root.level) == (1, logging.ERROR)
        assert isinstance(root.handlers[0].formatter, TextLines)
        show_logs(None, "json")
        assert root.level == logging.INFO
        assert isinstance(root.handlers[0].formatter, JsonLines)


def test_a_line_beside_the_log_is_in_its_form(capsys: pytest.CaptureFixture[str]) -> None:
    announce("text")("ready")
    announce("json")("ready")
    plain, line = capsys.readouterr().err.splitlines()
    assert plain == "ready"
    assert (json.loads(line)["message"], json.loads(line)["level"]) == ("ready", "info")


@pytest.mark.parametrize("name", ["dev", "server", "worker"])
def test_the_options_are_those_of_every_long_running_command(name: str) -> None:
    served = command.get_command(click.Context(command), name)
    assert served is not None
    options = {option.name: option for option in served.params}
    assert options["log_level"].envvar == "KAGZI_LOG_LEVEL"
    assert options["log_format"].envvar == "KAGZI_LOG_FORMAT"
    refused = kagzi(name, "--log-level", "loud")
    assert refused.returncode == 2
    assert "'debug', 'info', 'warning', 'error'" in refused.stderr


def test_the_project_file_knows_them_too(tmp_path: Path) -> None:
    (tmp_path / "kagzi.toml").write_text('log-level = "debug"\nlog_format = "json"\naddress = "far:1"\n')
    defaults = default_map(tmp_path)
    logs = {"log_level": "debug", "log_format": "json"}
    assert defaults["dev"] == defaults["server"] == logs
    assert defaults["worker"] == {"address": "far:1", **logs}


def test_dev_shows_what_fails_with_the_users_own_lines(tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS)
    with running(
        "dev", "flows.py", "--listen", "127.0.0.1:0", "--http", "off", "--log-format", "json", cwd=tmp_path
    ) as dev:
        address = dev.says(r"^  server +(\S+)$")[1]
        failed = kagzi("start", "checkout", "visa", "--id", "order-1", "--wait", "--address", address)
        assert failed.returncode == 1
        dev.says("the run failed")
        assert dev.interrupt() == 0
    records = [json.loads(line) for line in dev.err if line.startswith("{")]
    about = [each for each in records if each.get("workflow_id") == "order-1"]
    assert [(each["level"], each["logger"], each.get("step"), each.get("attempt")) for each in about] == [
        ("info", "kagzi.workflow", None, None),
        ("info", "shop", "charge", 1),
        ("warning", "kagzi.worker", "charge", 1),
        ("info", "shop", "charge", 2),
        ("error", "kagzi.worker", "charge", 2),
        ("error", "kagzi.worker", None, None),
    ]
    assert len({each["run_id"] for each in about}) == 1
    assert 'flows.py", line 9, in charge' in about[2]["exception"]
    assert "of kagzi hidden" in about[2]["exception"]
