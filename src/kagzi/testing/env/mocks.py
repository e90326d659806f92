"""Mocks of steps."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from ...core.errors import InvalidArgument
from ...sdk.execution.calls.bodies import StepBody
from ...sdk.workflow.step import Step

Calls = list[tuple[Any, ...]]
MockStates = dict[str, tuple[Calls, list[BaseException]]]


class _Mock:
    def __init__(self, returns: Any, raises: Sequence[BaseException] | None, calls: Callable[..., Any] | None) -> None:
        self.calls: Calls = []
        self._raises = list(raises or ())
        self._returns = returns
        self._calls = calls

    def state(self) -> tuple[Calls, list[BaseException]]:
        return list(self.calls), list(self._raises)

    def restore(self, state: tuple[Calls, list[BaseException]]) -> None:
        calls, raises = state
        self.calls[:] = calls  # in place: the test holds this list
        self._raises[:] = raises

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((*args, *kwargs.values()))
        if self._raises:
            raise self._raises.pop(0)
        if self._calls is None:
            return self._returns
        value = self._calls(*args, **kwargs)
        return await value if inspect.isawaitable(value) else value


class Mocks:
    """By the id of one execution of a step (`llm#2`, `enrich[3]`), which has precedence, or by the name of the step."""

    def __init__(self) -> None:
        self._mocks: dict[str, _Mock] = {}

    def add(
        self,
        step: str | Step[..., Any],
        returns: Any,
        raises: Sequence[BaseException] | None,
        calls: Callable[..., Any] | None,
    ) -> Calls:
        """Raises InvalidArgument."""
        name = step.name if isinstance(step, Step) else step
        if not (isinstance(cast("object", name), str) and name):
            raise InvalidArgument(f"step={step!r} is neither the name of a step nor a @step function.", field="step")
        if calls is not None and returns is not None:
            raise InvalidArgument("returns and calls are both given. Give one of them.", field="calls")
        for each in raises or ():
            if not isinstance(each, BaseException):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are users
                raise InvalidArgument(
                    f"raises has {each!r}, which is not an exception. Write raises=[TimeoutError()].", field="raises"
                )
        mock = self._mocks[name] = _Mock(returns, raises, calls)
        return mock.calls

    def clear(self) -> None:
        self._mocks.clear()

    def replace(self, body: StepBody) -> StepBody:
        """The body to execute: that of the mock, if there is one."""
        mock = self._mocks.get(body.step_id) or self._mocks.get(body.options.name)
        return body if mock is None else msgspec.structs.replace(body, fn=mock, is_async=True)

    def state(self) -> MockStates:
        """The calls so far, and the errors that are still to be raised."""
        return {name: mock.state() for name, mock in self._mocks.items()}

    def restore(self, states: MockStates) -> None:
        """Undo all calls since `state`."""
        for name, state in states.items():
            self._mocks[name].restore(state)
