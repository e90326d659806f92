"""What a workflow function gets: the run it is part of, and the calls that survive it."""

import logging
import uuid
from collections.abc import Coroutine, Mapping, MutableMapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from ..core.duration import Duration, parse_duration
from ..core.errors import InvalidArgument
from ..core.times import from_datetime, to_datetime, us_from_timedelta
from .retry import Retry
from .runner import Run
from .signatures import check_name
from .step import StepCall, here, step_options
from .step_calls import execute_sleep

_logger = logging.getLogger("kagzi.workflow")


class RunLog(logging.LoggerAdapter[logging.Logger]):
    """The log of a run. Silent while the run is replayed: what was said is not said again."""

    def __init__(self, run: Run) -> None:
        self._run = run
        task = run.task
        super().__init__(
            _logger, {"run_id": run.run_id, "workflow_id": task.workflow_id, "workflow_type": task.workflow_type}
        )

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802  the name is logging's
        return not self._run.replaying and self.logger.isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class Context:
    """The hands of a workflow. Everything that is not decided by input and results alone goes through it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.log = RunLog(run)

    @property
    def run_id(self) -> str:
        return self._run.run_id

    @property
    def workflow_id(self) -> str:
        return self._run.task.workflow_id

    @property
    def namespace(self) -> str:
        return self._run.task.namespace_id

    @property
    def workflow_type(self) -> str:
        return self._run.task.workflow_type

    @property
    def version(self) -> str:
        return self._run.task.version

    @property
    def attempt(self) -> int:
        """Of the whole run: 1, or more if the run itself is retried."""
        return self._run.task.attempt

    @property
    def labels(self) -> Mapping[str, str]:
        return MappingProxyType(dict(self._run.task.labels))

    @property
    def is_replaying(self) -> bool:
        """Whether the code does what it has done before. For logs and metrics; never decide by it what the workflow does."""
        return self._run.replaying

    def step(
        self, name: str, *, retry: Retry | None = None, timeout: Duration | None = None, key: object = None
    ) -> StepCall:
        """A step: `await ctx.step("charge", retry=..., timeout="30s").run(charge_card, order)`.

        `retry` defaults to the workflow's, the worker's, the server's; `timeout` is for each attempt. Names may repeat; a `key`
        identifies the step instead of its place in the order, for collections whose order may change.
        """
        return StepCall(self._run, step_options(name, retry, timeout), key)

    def sleep(self, name: str, duration: Duration) -> Coroutine[Any, Any, None]:
        """Sleep for a time that survives crashes and costs no worker."""
        duration_us = us_from_timedelta(parse_duration(duration, what="duration"))
        step_id = self._allot("sleep", name)
        return execute_sleep(self._run, step_id, name, duration_us=duration_us)

    def sleep_until(self, name: str, until: datetime) -> Coroutine[Any, Any, None]:
        """Sleep until a point in time (with a time zone). One that has passed is recorded and returns."""
        if not isinstance(until, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
            raise InvalidArgument(f"until={until!r} is no datetime. Write datetime(..., tzinfo=UTC).", field="until")
        until_us = from_datetime(until, what="until")
        step_id = self._allot("sleep_until", name)
        return execute_sleep(self._run, step_id, name, until_us=max(until_us, 1))

    def _allot(self, call: str, name: str) -> str:
        checked = check_name(name, what="name")
        return here(self._run, f"ctx.{call}({name!r})").allot(checked)

    def now(self) -> datetime:
        """The time of the last result (at first, of the start): the same on every replay."""
        here(self._run, "ctx.now()")
        now_us = self._run.now_us
        if now_us is None:
            raise self._run.rewind()
        return to_datetime(now_us)

    def uuid(self) -> uuid.UUID:
        """A UUID that is the same on every replay, and different for every call and run."""
        return uuid.UUID(bytes=self._derive("$uuid"), version=4)

    def random(self) -> float:
        """A number in [0, 1) that is the same on every replay, and different for every call and run."""
        return (int.from_bytes(self._derive("$random")[:7], "big") >> 3) / (1 << 53)

    def _derive(self, what: str) -> bytes:
        return here(self._run, f"ctx.{what[1:]}()").derive(what, self._run.run_id)
