"""`kagzi db partition`: once, with nobody else there, on PostgreSQL."""

import json
from pathlib import Path

from tests.support.kagzi_process import kagzi, running

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "off")


def test_histories_are_divided_once_while_no_server_runs(postgres_url: str) -> None:
    early = kagzi("db", "partition", "--parts", "3", "--db", postgres_url)
    assert early.returncode == 5
    assert "kagzi db migrate" in early.stderr
    with running("server", "--db", postgres_url, *NO_PORTS) as server:
        server.says("kagzi server ready")
        busy = kagzi("db", "partition", "--parts", "3", "--db", postgres_url)
        assert (busy.returncode, "Stop all servers" in busy.stderr) == (5, True)
        assert server.interrupt() == 0
    done = kagzi("db", "partition", "--parts", "3", "--db", postgres_url, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"parts": 3, "changed": True}
    again = kagzi("db", "partition", "--parts", "3", "--db", postgres_url)
    assert (again.returncode, "nothing to do" in again.stderr) == (0, True)
    status = kagzi("db", "status", "--db", postgres_url)
    assert (status.returncode, "up to date" in status.stdout) == (0, True)
    with running("server", "--db", postgres_url, *NO_PORTS) as server:
        server.says("kagzi server ready")
        assert server.interrupt() == 0


def test_what_cannot_be_divided_is_refused(postgres_url: str, tmp_path: Path) -> None:
    sqlite = kagzi("db", "partition", "--parts", "2", "--db", f"sqlite:///{tmp_path / 'kagzi.db'}")
    assert (sqlite.returncode, "PostgreSQL" in sqlite.stderr) == (2, True)
    few = kagzi("db", "partition", "--parts", "1", "--db", postgres_url)
    assert (few.returncode, "2..256" in few.stderr) == (5, True)
