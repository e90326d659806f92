"""Explains wrong calls of the public API: which line did not await a call, and which arguments a call takes."""

import os
import re
import sys
from collections.abc import Coroutine
from types import CodeType
from typing import Any, TypeVar

R = TypeVar("R")

_STEP = 'await ctx.step("charge").run(charge_card, order)'
_USAGE = {
    "Context.step": f"It takes the name of the step, and run() the function and its arguments: {_STEP}",
    "StepCall.run": f"It takes the function and its arguments: {_STEP}",
    "StepCall.retry": 'It takes a Retry: ctx.step("charge").retry(Retry(max_attempts=5)).run(charge_card, order)',
    "StepCall.timeout": 'It takes a duration: ctx.step("charge").timeout("30s").run(charge_card, order)',
    "Context.sleep": 'It takes the name of the sleep and a duration: await ctx.sleep("cool-down", "2s")',
    "Context.sleep_until": "It takes the name of the sleep and a datetime with a time zone: await "
    'ctx.sleep_until("end", datetime(2030, 1, 1, tzinfo=UTC))',
    "Context.wait_for": 'It takes a Signal: approved = Signal("approved", bool), and in the workflow: '
    'await ctx.wait_for(approved, timeout="1 day")',
    "Context.child": "It takes the workflow and its input: await ctx.child(ship_order, order)",
    "Context.start_child": "It takes the workflow and its input: handle = await ctx.start_child(ship_order, order)",
    "Context.changed": 'It takes the name of the change: if ctx.changed("ask-twice"): ...',
    "Context.set_status": 'It takes a text: ctx.set_status("half of it is done", progress=0.5)',
    "Context.set_state": 'It takes one value: ctx.set_state({"done": 3})',
    "Context.continue_as_new": "It takes the input of the new run: ctx.continue_as_new(input)",
    "BranchCalls.map": 'It takes the name of the steps, the items and a function: await ctx.map("resize", images, '
    "resize_image)",
    "BranchCalls.parallel": "It takes coroutines: await ctx.parallel(one(ctx), two(ctx))",
    "BranchCalls.race": "It takes coroutines: await ctx.race(one(ctx), two(ctx))",
}
_WRONG_CALL = re.compile(r"(\w+\.\w+)\(\) (?:missing|takes|got) .*")

_SITES_MAX = 1_000
# By call, code object and offset, because a workflow repeats the same calls. The entry keeps the code object alive, so
# that its id() is not reused.
_sites: dict[tuple[str, int, int], tuple[CodeType, str]] = {}


def called(coroutine: Coroutine[Any, Any, R], what: str) -> Coroutine[Any, Any, R]:
    """Name the coroutine that a call of the public API returns after the line that made the call. To be called by
    the API function itself: it looks two frames up. Python's RuntimeWarning then reads: coroutine 'ctx.step('charge'),
    called at flow.py:12 (write await),' was never awaited."""
    # The stack of this thread, without the cost of inspect.
    frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    code = frame.f_code
    key = (what, id(code), frame.f_lasti)
    known = _sites.get(key)
    if known is None:
        if len(_sites) >= _SITES_MAX:
            _sites.clear()
        place = f"{code.co_filename.rpartition(os.sep)[2]}:{frame.f_lineno}"
        known = _sites[key] = (code, f"{what}, called at {place} (write await),")
    named: Any = coroutine
    named.__qualname__ = known[1]
    return coroutine


def call_place(coroutine: object) -> str | None:
    """The path and line, `path/file.py:12`, of the call that returned this coroutine; None if not known."""
    words = getattr(coroutine, "__qualname__", "")
    for code, known in _sites.values():
        if known is words:
            line = known.rpartition(":")[2].partition(" ")[0]
            return f"{code.co_filename}:{line}"
    return None


def name_usage(error: BaseException) -> None:
    """If this is Python's TypeError for wrong arguments of a public API call, add to its text what the call takes,
    with an example."""
    if type(error) is not TypeError or len(error.args) != 1:
        return
    wrong = _WRONG_CALL.fullmatch(str(error))
    usage = None if wrong is None else _USAGE.get(wrong[1])
    if wrong is not None and usage is not None:
        text = wrong[0].replace("Context.", "ctx.").replace("BranchCalls.", "ctx.").replace("StepCall.", "ctx.step().")
        error.args = (f"{text}. {usage}",)
