"""`kagzi server` and `kagzi db`, on both stores."""

import json
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kagzi_process import kagzi, running

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'kagzi.db'}"
    else:
        yield request.getfixturevalue("postgres_url")


def test_an_empty_database_is_migrated_on_demand(database: str) -> None:
    before = kagzi("db", "status", "--db", database, "--json")
    assert before.returncode == 1, before.stderr
    status = json.loads(before.stdout)
    assert status["current"] == 0
    assert status["pending"]

    done = kagzi("db", "migrate", "--db", database, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["applied"] == status["pending"]

    after = kagzi("db", "status", "--db", database)
    assert (after.returncode, after.stderr) == (0, "")
    assert "up to date" in after.stdout
    assert "nothing to do" in kagzi("db", "migrate", env={"KAGZI_DB": database}).stderr


def test_no_migrate_refuses_an_empty_database_and_serves_a_migrated_one(database: str) -> None:
    refused = kagzi("server", "--db", database, "--no-migrate", *NO_PORTS)
    assert refused.returncode == 5
    assert "kagzi db migrate" in refused.stderr
    assert kagzi("db", "migrate", "--db", database).returncode == 0
    with running("server", "--db", database, "--no-migrate", *NO_PORTS) as server:
        server.says("kagzi server ready")
        assert server.interrupt() == 0


def test_a_server_prints_its_address_responds_and_stops_cleanly(database: str) -> None:
    with running("server", "--db", database, *NO_PORTS) as server:
        ready = server.says(r"kagzi server ready grpc=(\S+) http=(\S+) store=(\S+)")
        assert kagzi("list", "--address", ready[1], "--json").stdout == "[]\n"
        with urllib.request.urlopen(f"{ready[2]}/readyz", timeout=60) as answer:
            assert answer.status == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.out == []
        assert "Traceback" not in "\n".join(server.err)


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "kagzi.toml").write_text('db = "sqlite:///from_file.db"\nlisten = "127.0.0.1:0"\nhttp = "off"\n')
    with running("server", cwd=tmp_path) as server:
        assert "from_file.db" in server.says("kagzi server ready (.*)")[1]
    with running("server", cwd=tmp_path, env={"KAGZI_DB": "sqlite:///from_env.db"}) as server:
        assert "from_env.db" in server.says("kagzi server ready (.*)")[1]
    env = {"KAGZI_DB": "sqlite:///from_env.db"}
    with running("server", "--db", "sqlite:///from_flag.db", cwd=tmp_path, env=env) as server:
        assert "from_flag.db" in server.says("kagzi server ready (.*)")[1]
    assert {path.name for path in tmp_path.glob("from_*.db")} == {"from_file.db", "from_env.db", "from_flag.db"}


def test_a_client_finds_its_address_in_environment_and_file(tmp_path: Path) -> None:
    with running("server", *NO_PORTS, cwd=tmp_path) as server:
        address = server.says(r"grpc=(\S+)")[1]
        assert kagzi("list", env={"KAGZI_ADDRESS": address}).returncode == 0
        (tmp_path / "kagzi.toml").write_text(f'address = "{address}"\n')
        assert kagzi("list", cwd=tmp_path).returncode == 0
        assert kagzi("list", cwd=tmp_path, env={"KAGZI_ADDRESS": "127.0.0.1:1"}).returncode == 4
