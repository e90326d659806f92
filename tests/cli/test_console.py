"""What strangers wrote reaches a terminal as text, and programs as JSON of the same value."""

import json
import shlex
from collections.abc import Callable

import click
import pytest

from kagzi.cli import console
from kagzi.core.text.commands import quoted

HOSTILE = {
    "title": "\x1b]0;all is well\x07",
    "clear": "\x1b[2J",
    "hidden": "\x1b[8m",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "c1": "\x9b2J",
    "del": "\x7f\x7f\x7f",
    "bidi": "\u202etxt.exe",
    "return": "fine\rnot",
}
WAYS: dict[str, Callable[[str], None]] = {
    "put": console.put,
    "say": console.say,
    "warn": console.warn,
    "fail": console.fail,
    "hint": console.hint,
    "fields": lambda text: console.put_fields({"status": text}),
    "table": lambda text: console.put_table([{"error": text}]),
    "page": console.say_page,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("way", WAYS)
def test_control_characters_are_shown(way: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    WAYS[way](f"before {HOSTILE[name]} after")
    shown = "".join(capsys.readouterr())
    assert click.unstyle(shown).replace("\n", "").isprintable()
    assert "before " in shown
    assert " after" in shown


def test_lines_and_colours_of_commands_stay(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{console.status_text('failed')}\n\tat é"
    assert console.printable(text) == text
    console.put_table([{"status": console.status_text("failed"), "error": "a\nFAKE  ROW"}])
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.parametrize("lines", [True, False])
def test_json_has_the_same_value_and_nothing_to_obey(lines: bool, capsys: pytest.CaptureFixture[str]) -> None:
    value = {**HOSTILE, "plain": "é 😀", "\x9b": ["\u2028", "\U000e0001"]}
    console.put_json(value, lines=lines)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert out.replace("\n", "").isprintable()
    assert "é 😀" in out


@pytest.mark.parametrize("word", ["a b", "x; $(touch /tmp/x)", "`id`", "it's", "\x1b[2J", "plain-1.2/3"])
def test_an_argument_is_one_word_for_a_shell(word: str) -> None:
    assert quoted(word).isprintable()
    assert shlex.split(quoted(word)) == [word if word.isprintable() else "\\x1b[2J"]
