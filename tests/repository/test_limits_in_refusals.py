"""A refusal by a limit names it in metadata["limit"] and says how much it allows in metadata["maximum"]: made in one
place."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kagzi.core import limits
from kagzi.core.budgets import NamespaceBudget
from kagzi.core.error_details import ErrorCode, ErrorDetail
from kagzi.core.errors import RequestError
from kagzi.core.records import Payload
from kagzi.core.run import refusals
from kagzi.core.run.outcomes import Refused
from kagzi.core.states import KindCode
from kagzi.core.workflow_types.admission import type_full
from kagzi.engine.checks import requests, schedules

SOURCES = Path(__file__).parents[2] / "src" / "kagzi"
PASSED_ON = ("metadata=refused.metadata", "metadata=refusal.metadata")  # of a refusal that is raised again, as it was


def test_metadata_of_a_limit_is_made_by_one_function() -> None:
    offences: list[str] = []
    for where, node in calls():
        for keyword in node.keywords:
            if keyword.arg == "metadata" and isinstance(keyword.value, ast.Dict):
                names = [key.value for key in keyword.value.keys if isinstance(key, ast.Constant)]
                if "limit" in names or "maximum" in names:
                    offences.append(where)
    assert not offences, f"use limit_reached(name, maximum): {offences}"


def test_every_refusal_that_speaks_of_a_limit_names_it() -> None:
    offences: list[str] = []
    for where, node in calls():
        text = ast.unparse(node)
        if is_refusal(node) and (
            "RESOURCE_EXHAUSTED" in text or "ResourceExhausted(" in text or "the limit is" in text
        ):
            named = "limit_reached(" in text or any(passed in text for passed in PASSED_ON)
            offences += [] if named else [where]
    assert not offences, f"metadata=limit_reached(name, maximum): {offences}"


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in SOURCES.rglob("*.py"):
        if "v1" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield f"{path.relative_to(SOURCES)}:{node.lineno}", node


def is_refusal(node: ast.Call) -> bool:
    name = ast.unparse(node.func).rpartition(".")[2]
    return name in ("ResourceExhausted", "InvalidArgument", "PreconditionFailed", "refused", "ErrorDetail")


SAMPLES: dict[str, Any] = {
    "code": ErrorCode.CONFLICT, "recorded": 1, "requested": KindCode.SLEEP, "attempt": 1, "status": "failed", "size": 5_000,
    "itself": False, "maximum": 10, "per_second": 0.5, "wait_us": 1_500, "stored": 20, "error": ErrorDetail(),
}  # fmt: skip


def every_refusal() -> Iterator[tuple[str, ErrorDetail]]:
    """Of core, of a full workflow type, of the budgets of a server and of the checks of requests."""
    for name, function in inspect.getmembers(refusals, inspect.isfunction):
        if name.startswith("_") or function.__module__ != refusals.__name__:
            continue
        arguments = {each: SAMPLES.get(each, "x") for each in inspect.signature(function).parameters}
        if name == "refused":
            arguments |= {"metadata": {}, "retry_after_ms": 0}
        if name == "not_current":
            arguments["status"] = 1
        if name == "child_conflict":
            arguments["requested"] = "x"
        result = function(**arguments)
        if isinstance(result, Refused | ErrorDetail):
            yield name, result.error if isinstance(result, Refused) else result
    yield "full type", type_full("shop", None, 3).error
    yield "full key", type_full("shop", "key", 3).error
    budget = NamespaceBudget("long polls", 0, 0)
    for refuses in (
        lambda: budget.take("x"),
        lambda: requests.payload(Payload(b"12345"), "input", 4),
        lambda: requests.text("12345", "reason", 4),
        lambda: requests.entries({"a": "1", "b": "2"}, "labels", 1),
        lambda: requests.batch_size([1, 2], 1, "starts"),
        lambda: schedules.check_id("x" * (limits.SCHEDULE_ID_BYTES + 1)),
    ):
        with pytest.raises(RequestError) as caught:
            refuses()
        error = caught.value
        yield error.message, ErrorDetail(code=error.code, metadata=error.metadata)


def test_a_limit_is_a_name_and_its_maximum_a_number() -> None:
    refusals_by_name = dict(every_refusal())
    assert len(refusals_by_name) > 30
    limited = {name: detail for name, detail in refusals_by_name.items() if "limit" in detail.metadata}
    assert len(limited) >= 15
    for name, detail in refusals_by_name.items():
        assert (detail.code is ErrorCode.RESOURCE_EXHAUSTED) <= (name in limited), name
        assert ("maximum" in detail.metadata) == (name in limited), name
    for name, detail in limited.items():
        assert detail.metadata["limit"].isidentifier(), name
        assert float(detail.metadata["maximum"]) >= 0, name
