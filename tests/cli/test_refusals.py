"""What cannot work is said at once, with the option, the value and the remedy; never a traceback."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import kagzi, running

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.parametrize(
    ("arguments", "option", "remedy"),
    [
        (["start", "x", "--wait", "--timeout", "30"], "--timeout", 'Write "30s"'),
        (["start", "x", "--delay", "soon"], "--delay", "Write for example"),
        (["start", "x", "--label", "team"], "--label", "Write key=value"),
        (["start", "x", "--timeout", "1s"], "--timeout", "--wait"),
        (["list", "--since", "2"], "--since", 'Write "2s"'),
        (["list", "--status", "done"], "--status", "completed"),
        (["list", "--limit", "0"], "--limit", "1<=x"),
        (["list", "--address", "nonsense://x"], "--address", "unknown scheme"),
        (["list", "--address", "postgresql://u:geheim@h/db"], "--address", "kagzi server --db"),
        (["list", "--address", ":memory:"], "--address", "visible only to the process"),
        (["server", "--lease", "30"], "--lease", 'Write "30s"'),
        (["server", "--lease", "1s", "--heartbeat", "1s"], "--heartbeat", "Make the lease longer"),
        (["server", "--listen", "50051"], "--listen", "127.0.0.1:50051"),
        (["server", "--db", "mysql://x"], "--db", "postgresql://"),
        (["dev", "--http", "x"], "--http", "HOST:PORT"),
        (["dev", "no_such_file.py"], "no_such_file.py", "Give a Python file"),
        (["worker", "no_such_file.py"], "no_such_file.py", "Give a Python file"),
        (["db", "status"], "--db", "hint: add --db URL; see"),
        (["keys", "create", "x"], "--scope", "hint: add --scope read|client|worker|admin; see"),
        (["db", "status", "--db", ":memory:"], "--db", "nothing to migrate"),
        (["bench", "--duration", "5"], "--duration", 'Write "5s"'),
        (["workers", "-n", "shop", "drain", "w"], "'drain'", "Write kagzi workers drain ..., then the options."),
    ],
)
def test_a_bad_value_names_its_option_and_the_remedy(
    arguments: list[str], option: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = kagzi_inline(*arguments)
    assert done.stderr.startswith("error: ")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert option in done.stderr
    assert remedy in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "geheim" not in done.stderr


@pytest.mark.parametrize("arguments", [["list"], ["get", "x"], ["start", "x", "--wait"]])
def test_a_wrong_address_is_exit_code_4_and_names_it(arguments: list[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    done = kagzi(*arguments, "--address", address)
    assert (done.returncode, done.stdout) == (4, "")
    assert f"waiting: cannot reach the server at {address}: connection refused; trying again until" in done.stderr
    assert f"error: Cannot reach the server at {address}: connection refused. Tried for" in done.stderr
    assert "kagzi dev" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mistyped_file_does_not_become_a_database(tmp_path: Path) -> None:
    done = kagzi("list", "--address", "sqlite:///typo.db", cwd=tmp_path)
    assert done.returncode == 4
    assert "typo.db does not exist" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--listen", "--http"])
@pytest.mark.parametrize("command", ["server", "dev"])
def test_a_taken_port_is_refused(command: str, option: str, taken_port: int, tmp_path: Path) -> None:
    others = {"--listen": "127.0.0.1:0", "--http": "127.0.0.1:0", option: f"127.0.0.1:{taken_port}"}
    flags = [word for pair in others.items() for word in pair]
    done = kagzi(command, *flags, cwd=tmp_path)
    assert done.returncode == 5
    assert f"127.0.0.1:{taken_port} is in use" in done.stderr
    assert option in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_that_cannot_be_reached_is_exit_code_4(tmp_path: Path) -> None:
    url = f"postgresql://ada:geheim@127.0.0.1:{free_port()}/nowhere"
    for arguments in (["server", *NO_PORTS], ["db", "status"], ["db", "migrate"]):
        done = kagzi(*arguments, "--db", url, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (4, ""), done.stderr
        assert "geheim" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_public_address_needs_a_word(tmp_path: Path) -> None:
    done = kagzi("server", "--listen", "0.0.0.0:0", "--http", "off", cwd=tmp_path)
    assert done.returncode == 5
    assert "--insecure" in done.stderr


def test_a_second_server_on_one_file_is_refused(tmp_path: Path) -> None:
    with running("server", *NO_PORTS, cwd=tmp_path) as first:
        first.says("kagzi server ready")
        done = kagzi("server", *NO_PORTS, cwd=tmp_path)
        assert done.returncode == 5, done.stderr
        assert "or choose another database (--db, or --data for kagzi dev and kagzi demo)" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_module_without_workflows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("x = 1\n")
    done = kagzi("worker", "empty.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no workflow and no Worker" in done.stderr
