"""What people type as INPUT, and the JSON that becomes of it."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.cli.runs.inputs import read_input


def value_of(*arguments: str, stdin: bytes = b"") -> Any:
    data = read_input(arguments, lambda: stdin)
    assert data is not None
    return json.loads(data)


def test_nothing_is_no_input() -> None:
    assert read_input([], lambda: b"") is None


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("world", "world"),
        ("hello world", "hello world"),
        ("42", 42),
        ('"42"', "42"),
        ("null", None),
        ("true", True),
        ('{"a": [1, 2]}', {"a": [1, 2]}),
        ("NaN", "NaN"),
        ("https://example.org/?a=b", "https://example.org/?a=b"),
        ('"a=b"', "a=b"),
        ("", ""),
        ("söß", "söß"),
    ],
)
def test_one_argument_is_json_if_it_parses_and_a_string_otherwise(argument: str, value: Any) -> None:
    assert value_of(argument) == value


def test_pairs_are_an_object() -> None:
    assert value_of("user=ada", "total:=9.5", "tags:=[1]", "note=a = b", "empty=") == {
        "user": "ada",
        "total": 9.5,
        "tags": [1],
        "note": "a = b",
        "empty": "",
    }
    assert value_of("only=one") == {"only": "one"}


def test_a_file_and_stdin_are_read_like_an_argument(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"user": "ada"}\n')
    (tmp_path / "text").write_text("just text\n")
    assert value_of(f"@{tmp_path / 'order.json'}") == {"user": "ada"}
    assert value_of(f"@{tmp_path / 'text'}") == "just text"
    assert value_of("-", stdin=b"[1, 2]") == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hello", "world"], "'hello' is not a pair"),
        (["a=1", "b"], "'b' is not a pair"),
        (["a=1", "a=2"], "'a' twice"),
        (["a:=x"], "a:=x is not valid JSON: expecting value at column 1. For text, write a=x."),
        (["{user: ada}"], "INPUT is not valid JSON: expecting property name enclosed in double quotes at column 2."),
        (["[1, 2"], "INPUT is not valid JSON: expecting ',' delimiter at column 6. Correct it, or add --text"),
        (['"ada'], "INPUT is not valid JSON: unterminated string starting at column 1."),
        (["[NaN]"], "INPUT is not valid JSON: NaN is not JSON."),
        ([' {"a": 1}}'], "INPUT is not valid JSON: extra data at column 10."),
        (["@/no/such/file"], "@/no/such/file cannot be read: No such file or directory"),
        (["\udcff"], "not UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], message: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        read_input(arguments, lambda: b"")
    assert message in caught.value.message


def test_stdin_that_is_no_text_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match="stdin is not UTF-8"):
        read_input(["-"], lambda: b"\xff")


def test_broken_json_in_a_file_names_the_file_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "order.json").write_text('{"user": "ada",\n "total": }\n')
    with pytest.raises(click.UsageError, match=r"INPUT @\S+/order.json is not valid JSON: .* at line 2, column 11\."):
        value_of(f"@{tmp_path / 'order.json'}")


def test_text_is_text_even_if_it_resembles_json(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("[a link](x)\n")
    for arguments, value in ((["42"], "42"), (["{a"], "{a"), (["a=b"], "a=b"), (["-"], "[x"), ([], None)):
        data = read_input(arguments, lambda: b"[x\n", as_text=True)
        assert value == (None if data is None else json.loads(data))
    assert read_input([f"@{tmp_path / 'notes.md'}"], lambda: b"", as_text=True) == b'"[a link](x)"'
    with pytest.raises(click.UsageError, match="--text takes one VALUE, not 2"):
        read_input(["a", "b"], lambda: b"", as_text=True, what="VALUE")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_gets_through_as_itself_or_as_the_json_it_is(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=lambda _: pytest.fail("not JSON"))
    except (ValueError, pytest.fail.Exception):
        expected = text
        if text.lstrip().startswith(("{", "[", '"')):
            with pytest.raises(click.UsageError):
                value_of(text)
            return
    if "=" not in text and not text.startswith("@") and text != "-":
        assert value_of(text) == expected
