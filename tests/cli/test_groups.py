"""Groups of commands are alike: without a verb they list, lists have the same options, and everything has --json."""

from pathlib import Path
from typing import Any

import click
import pytest

from kagzi.cli.groups import Listing
from kagzi.cli.main import COMMANDS, kagzi
from kagzi.cli.settings import CLIENTS, default_map
from tests.support.kagzi_inline import kagzi_inline

# They serve, or their output is a stream or a file of another form.
WITHOUT_JSON = {"demo", "dev", "server", "worker", "export"}


def command(name: str) -> click.Command:
    named = kagzi.get_command(click.Context(kagzi), name)
    assert named is not None
    return named


def flags(of: click.Command) -> set[str]:
    return {flag for parameter in of.params if isinstance(parameter, click.Option) for flag in parameter.opts}


GROUPS = [name for name in COMMANDS if isinstance(command(name), click.Group)]
DATABASES = ("db", "effects", "outbox")  # they ask a database and not a server, and have no namespace
LISTS = [name for name in GROUPS if name not in DATABASES]


@pytest.mark.parametrize("group", LISTS)
@pytest.mark.parametrize("arguments", [(), ("--json",), ("--jsonl", "--namespace", "other")])
def test_without_a_verb_a_group_lists(group: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    named = command(group)
    assert isinstance(named, Listing)
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(named.commands["list"], "callback", lambda **options: calls.append(options))
    for words in ((group, *arguments), (group, "list", *arguments)):
        done = kagzi_inline(*words)
        assert done.returncode == 0, done.stderr
    assert calls[0] == calls[1]
    assert calls[0]["as_json"] == ("--json" in arguments)
    assert calls[0]["jsonl"] == ("--jsonl" in arguments)


@pytest.mark.parametrize("group", LISTS)
def test_options_of_the_list_need_no_verb(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    named = command(group)
    assert isinstance(named, click.Group)
    lists = named.commands["list"]
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(lists, "callback", lambda **options: calls.append(options))
    for parameter in lists.params:
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            value = {"status": "online", "limit": "7"}.get(parameter.name or "", "some")
            assert kagzi_inline(group, parameter.opts[0], value).returncode == 0
            assert str(calls[-1][parameter.name]) == value
    assert calls


def test_every_command_gives_json() -> None:
    poor: list[str] = []
    for name in COMMANDS:
        named = command(name)
        each = named.commands.items() if isinstance(named, click.Group) else [("", named)]
        poor += [f"{name} {verb}".strip() for verb, one in each if "--json" not in flags(one)]
    assert set(poor) == WITHOUT_JSON


@pytest.mark.parametrize("group", LISTS)
def test_one_thing_is_shown_by_the_same_verb(group: str) -> None:
    named = command(group)
    assert isinstance(named, Listing)
    context = click.Context(named)
    if group not in {"versions", "keys"}:  # lists show all that there is to a version, or a key
        assert named.get_command(context, "get") is named.get_command(context, "show") is not None


def test_the_project_file_is_for_every_command_that_asks_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kagzi.toml").write_text('address = "far:1"\nnamespace = "team"\n')
    asking = {name for name in COMMANDS if "--address" in flags(command(name))} | set(LISTS)
    assert asking == set(CLIENTS)
    assert set(default_map()) - {"dev"} == asking
    named = command("workers")
    assert isinstance(named, click.Group)
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(named.commands["get"], "callback", lambda **options: calls.append(options))
    assert kagzi_inline("workers", "get", "w-1").returncode == 0
    here = {"tls_ca": None, "tls_cert": None, "tls_key": None, "codec": None}
    assert calls == [{"worker": "w-1", "as_json": False, "address": "far:1", "namespace": "team", **here}]
