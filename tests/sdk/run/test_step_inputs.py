"""The arguments of steps that fail are recorded for people, or those of all steps, or none."""

import json
from typing import Any

import pytest

from kagzi import InvalidArgument, Worker
from kagzi.core.limits import STEP_INPUT_BYTES
from kagzi.sdk.execution.calls.arguments import write_arguments


async def charge(amount: int, *others: int, who: str = "ada", **more: Any) -> int:
    raise ValueError(amount, others, who, more)


class Odd:
    def __repr__(self) -> str:
        return "<odd>" * 1_000


def written(*args: Any, **kwargs: Any) -> Any:
    payload = write_arguments(charge, args, kwargs)
    assert payload is not None
    assert len(payload.data) <= STEP_INPUT_BYTES
    return json.loads(payload.data)


def test_arguments_have_the_names_of_their_parameters() -> None:
    assert written(5, 6, 7, who="eve", note=None) == {
        "amount": 5,
        "others": [6, 7],
        "who": "eve",
        "more": {"note": None},
    }
    assert write_arguments(charge, (), {}) is None
    payload = write_arguments(len, ([1],), {})
    assert payload is not None
    assert json.loads(payload.data) in ({"obj": [1]}, {"0": [1]})


def test_what_has_no_json_form_or_is_large_is_shortened() -> None:
    shown = written(Odd(), who="x" * 100_000)
    assert shown["amount"]["$repr"].startswith("<odd>")
    assert len(shown["amount"]["$repr"]) == 512
    assert shown["who"]["$bytes"] == 100_002
    assert shown["who"]["$start"].startswith('"xxx')
    many = {f"name{number}": "x" * 100 for number in range(1_000)}
    assert len(written(1, **many)["more"]) == 2  # $bytes and $start


def test_writing_arguments_never_raises() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert write_arguments(charge, (Unprintable(),), {}) is None


def test_the_option_is_checked() -> None:
    assert Worker(record_inputs="always").options.record_inputs == "always"
    assert Worker(record_inputs="never").label("a", "b").options.record_inputs == "never"
    with pytest.raises(InvalidArgument, match='record_inputs=True must be "failed", "always" or "never"'):
        Worker(record_inputs=True)  # type: ignore[arg-type]
