"""Values of options: a bad one is refused before anything happens, and the option is named."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import click
import pytest

from kagzi.cli.connection import tls_for
from kagzi.cli.options import duration, key_value
from kagzi.cli.settings import default_map
from kagzi.cli.tls_options import TlsOptions
from kagzi.sdk.transport.credentials import Tls


def test_durations_need_a_unit() -> None:
    assert duration("5m 30s") == timedelta(minutes=5, seconds=30)
    with pytest.raises(click.BadParameter, match=r'has no unit\. Write "30s"'):
        duration("30")


def test_labels_are_pairs() -> None:
    assert key_value("team=a=b") == ("team", "a=b")
    with pytest.raises(click.BadParameter, match="Write key=value"):
        key_value("team")


def test_the_project_file_gives_defaults(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.kagzi]\naddress = "far:1"\ndb = "sqlite:///a.db"\ndata = "here"\nlease = "3s"\n'
    )
    defaults = default_map(tmp_path)
    assert defaults["list"] == {"address": "far:1"}
    assert defaults["db"]["status"] == {"url": "sqlite:///a.db"}
    assert defaults["dev"] == {"data": "here"}
    assert "server" not in defaults  # the server reads the file itself, below the environment


def test_the_project_file_names_certificates_of_clients_apart_from_the_servers(tmp_path: Path) -> None:
    (tmp_path / "kagzi.toml").write_text(
        'tls_cert = "server.pem"\ntls_key = "server.key"\n'
        'tls_ca = "ca.pem"\nclient_tls_cert = "me.pem"\nclient_tls_key = "me.key"\n'
    )
    defaults = default_map(tmp_path)
    assert defaults["list"] == defaults["worker"] == {"tls_ca": "ca.pem", "tls_cert": "me.pem", "tls_key": "me.key"}
    assert "server" not in defaults


def test_typed_certificates_ask_for_tls_and_others_only_name_files() -> None:
    files = TlsOptions("ca.pem", "me.pem", "me.key")
    assert tls_for("localhost:1", files._replace(typed=True)) == Tls("ca.pem", "me.pem", "me.key")
    assert tls_for("http://localhost:1", files) is None
    assert tls_for("https://localhost:1", files) == tls_for("localhost:1", files) == Tls("ca.pem", "me.pem", "me.key")
    assert tls_for("sqlite:///a.db", files) is None


def test_a_project_file_that_does_not_mention_kagzi_gives_none(tmp_path: Path) -> None:
    assert default_map(tmp_path) == {}
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    assert default_map(tmp_path) == {}


@pytest.mark.parametrize(
    "table",
    ["[tool.kagzi]\n", "[ tool . kagzi ]\n", '[tool."kagzi"]\n', "[tool]\nkagzi.", "tool.kagzi.", "[tool.'kagzi']\n"],
)
def test_the_table_is_found_however_toml_writes_it(tmp_path: Path, table: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f'{table}address = "far:1"\n[project]\nname = "shop"\n')
    assert default_map(tmp_path)["list"] == {"address": "far:1"}


@pytest.mark.parametrize("requirement", ["kagzi", "kagzi>=0.1", "kagzi[crypto]>=0.1", "kagzi~=0.1"])
def test_a_project_that_depends_on_kagzi_need_not_have_settings(tmp_path: Path, requirement: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "shop"\ndependencies = ["{requirement}", "httpx"]\n')
    assert default_map(tmp_path) == {}


def test_a_command_in_such_a_project_does_not_import_the_server(tmp_path: Path) -> None:
    """Importing it takes a noticeable part of the time of a short command."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\ndependencies = ["kagzi>=0.1"]\n')
    program = "import sys; from kagzi.cli.settings import default_map; default_map(); print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert "kagzi.cli.settings" in modules
    assert not [name for name in modules if name.startswith(("kagzi.server", "kagzi.store"))]


def test_an_unknown_name_in_the_project_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.kagzi]\nadress = "far:1"\n')
    with pytest.raises(click.ClickException, match=r"unknown setting 'adress'. Did you mean 'address'\?"):
        default_map(tmp_path)
