"""What `kagzi worker FILE` and `kagzi dev FILE` say about files that they cannot serve."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kagzi.cli.operate.targets import LoadError, load, parse_target

TWO_OF_A_NAME = """
from kagzi import Context, workflow

@workflow("pay")
async def charge(ctx: Context) -> None: ...

@workflow("pay")
async def refund(ctx: Context) -> None: ...
"""
NOT_ASYNC = """
from kagzi import Context, workflow

@workflow
def pay(ctx: Context) -> None: ...
"""


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    known, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def file_with(directory: Path, text: str) -> str:
    path = directory / "unservable_flows.py"
    path.write_text(text)
    return str(path)


def test_two_workflows_of_a_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match=r"two workflows with the name 'pay' and the version 1.*version=2"):
        load(parse_target(file_with(tmp_path, TWO_OF_A_NAME)))


def test_one_workflow_under_two_names_is_served_once(tmp_path: Path) -> None:
    text = "from kagzi import workflow\n@workflow\nasync def pay(ctx): ...\nsame = pay\n"
    assert [each.name for each in load(parse_target(file_with(tmp_path, text))).workflows] == ["pay"]


def test_a_mistake_that_kagzi_finds_is_shown_at_the_users_line_only(tmp_path: Path) -> None:
    file = file_with(tmp_path, NOT_ASYNC)
    with pytest.raises(LoadError) as caught:
        load(parse_target(file))
    first, _, last = str(caught.value).partition("\n")
    assert first == f'  File "{file}", line 4, in <module>'
    assert "kagzi/sdk" not in last
    assert "kagzi.InvalidArgument: workflow 'pay' must be an `async def` function" in last


def test_a_relative_import_without_a_package_comes_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"(?s)no known parent package.*add an empty __init__\.py beside the file"):
        load(parse_target(file_with(tmp_path, "from .helpers import charge\n")))
