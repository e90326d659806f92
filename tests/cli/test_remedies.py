"""What commands propose is what a person can type, and what they print fits a terminal."""

import socket
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from kagzi.cli.connection import _remedy
from kagzi.cli.main import COMMANDS, GROUPS, kagzi
from kagzi.cli.option_names import python_in_options
from kagzi.cli.runs.get import CELL_CHARS, _children_text
from kagzi.cli.runs.views import shown_value
from kagzi.core.error_details import ErrorDetail
from kagzi.core.errors import DOWN, DOWN_CONNECTION, Unavailable
from kagzi.sdk.transport.address import parse_address
from kagzi.sdk.transport.unreachable import cause_of
from kagzi.sdk.worker.failure_log import FailedAttempt
from kagzi.server.access.access import NO_KEY
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from kagzi.server.startup import CannotStart
from kagzi.v1 import worker_pb2 as pb


@pytest.mark.parametrize(
    ("text", "option"),
    [
        (cause_of("CERTIFICATE_VERIFY_FAILED").remedy, "Pass its certificate authority: --tls-ca FILE."),
        (NO_KEY, "this server requires an API key, and none was given. Set KAGZI_API_KEY."),
    ],
)
def test_remedies_name_options(text: str, option: str) -> None:
    assert python_in_options(text) == option


def test_nobody_starts_a_server_because_of_a_certificate() -> None:
    address = parse_address("https://localhost:1", {})
    metadata = {DOWN: DOWN_CONNECTION}
    assert "kagzi dev" in _remedy(Unavailable("connection refused", metadata=metadata), address)
    assert not _remedy(Unavailable("its TLS certificate is not trusted", metadata=metadata), address)


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("field", ["listen", "http"])
async def test_a_port_in_use_leaves_no_database(tmp_path: Path, field: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = {"listen": 0, "http": 0, field: taken.getsockname()[1]}
        listens = {name: ListenAddress("127.0.0.1", port) for name, port in ports.items()}
        server = Server(ServerConfig(db=f"sqlite:///{tmp_path}/new.db", **listens))
        with pytest.raises(CannotStart, match="is in use"):
            await server.start()
    assert not files_in(tmp_path)


def test_a_delay_that_a_step_asked_for_is_logged_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """However long the answer was on its way."""
    detail = ErrorDetail(message="429", retry_after_ms=300)
    FailedAttempt(pb.Task(run_id="r", workflow_type="w"), "charge", 1, None, detail, None).retried(119_000)
    assert "retrying in 300 ms" in caplog.text


def test_all_children_are_counted() -> None:
    children = [f"c{number}" for number in range(1_000)]
    view = {"children": children, "children_count": 5_000, "children_capped": False}
    assert _children_text(view).startswith("5000: c0, ")
    assert _children_text(view | {"children_count": 10_000, "children_capped": True}).startswith("10000+: c0, ")


def test_a_result_in_a_table_is_cut() -> None:
    text = shown_value("x" * 1_500, CELL_CHARS)
    assert len(text) < CELL_CHARS + 50
    assert text.endswith("... (1.5 kB in all; --json prints it)")


def test_each_command_is_in_one_group_of_the_help() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_what_the_documentation_says(shell: str) -> None:
    made = get_completion_class(shell)
    assert made is not None
    assert f"{shell}_complete" in made(kagzi, {}, "kagzi", "_KAGZI_COMPLETE").source()
    line = f"_KAGZI_COMPLETE={shell}_source kagzi"
    assert line in (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()
