"""`kagzi keys` and `kagzi audit`, from the first key on, which no server could be asked for."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from kagzi.cli.main import run
from kagzi.core.limits import Settings
from kagzi.server.config import AUTH_KEYS
from tests.server.http.world import World, world


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        done = self._capsys.readouterr()
        return code, done.out, done.err

    def json(self, *arguments: str) -> Any:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KAGZI_API_KEY", raising=False)
    return Cli(capsys)


@pytest.fixture
def served(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Generator[World]:
    """A server that asks for keys; commands have one that may do everything."""
    _, key, _ = cli("keys", "create", "ops", "--scope", "admin", "--everywhere", "--db", "sqlite:///kagzi.db")
    with world("sqlite:///kagzi.db", api_key=key.strip(), auth=AUTH_KEYS, settings=Settings(keys_check_ms=100)) as made:
        monkeypatch.setenv("KAGZI_ADDRESS", made.server.grpc_address)
        monkeypatch.setenv("KAGZI_API_KEY", key.strip())
        yield made


def test_the_first_key_is_made_in_the_database(cli: Cli) -> None:
    database = ("--db", "sqlite:///kagzi.db")
    code, out, err = cli("keys", "create", "ops", "--scope", "admin", "--everywhere", *database)
    assert code == 0
    assert out.startswith("kgz_")
    assert out.count("\n") == 1, "the key alone is on standard output"
    assert out.strip() not in err
    assert "only once" in err
    [listed] = cli.json("keys", "list", "--everywhere", *database)
    assert (listed["name"], listed["namespace"], listed["scopes"], listed["revoked_at"]) == (
        "ops",
        "*",
        ["admin"],
        None,
    )
    assert out.strip() not in json.dumps(listed)
    rotated = cli.json("keys", "rotate", listed["key_id"], "--everywhere", *database)
    assert rotated["key"].startswith(f"kgz_{listed['key_id']}_")
    assert rotated["key"] != out.strip()
    assert cli.json("keys", "revoke", listed["key_id"], "--everywhere", *database)["revoked_at"]
    code, _, err = cli("keys", "rotate", listed["key_id"], "--everywhere", *database)
    assert (code, "was revoked" in err) == (5, True)
    assert cli("keys", "create", "x", *database)[0] == 2, "without a scope a key could do nothing"
    assert cli("keys", "revoke", "0" * 16, *database)[0] == 3


def test_keys_are_made_replaced_and_revoked_by_calls(cli: Cli, served: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cli.json("keys", "create", "ci", "--scope", "client", "--scope", "worker", "--expires-in", "90d")
    assert (made["scopes"], made["namespace"]) == (["client", "worker"], "default")
    assert made["expires_at"] > made["created_at"]
    assert [each["name"] for each in cli.json("keys")] == ["ci"]
    assert {each["name"] for each in cli.json("keys", "list", "--everywhere")} == {"ci", "ops"}
    rotated = cli.json("keys", "rotate", made["key_id"], "--grace", "1h")
    code, out, err = cli("keys", "revoke", made["key_id"])
    assert (code, out) == (0, "")
    assert "is revoked" in err
    changes = cli.json("audit", "--since", "1h")
    assert [change["action"] for change in changes] == ["key.revoke", "key.rotate", "key.create"]
    assert {change["key_name"] for change in changes} == {"ops"}
    assert cli.json("audit", "--until", "1h") == []
    assert "key.create" in cli("audit", "--everywhere", "--limit", "10")[1]
    for key in (made["key"], rotated["key"], "kgz_no"):
        monkeypatch.setenv("KAGZI_API_KEY", key)
        code, _, err = cli("list")
        assert code == 5
        assert key not in err
    monkeypatch.delenv("KAGZI_API_KEY")
    code, _, err = cli("list")
    assert (code, "KAGZI_API_KEY" in err) == (5, True)
    code, _, err = cli("keys", "create", "x", "--scope", "read", "--db", "sqlite:///kagzi.db")
    assert (code, "in use" in err) == (5, True)
