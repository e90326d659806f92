"""`kagzi open`, and the address of a run's page wherever a run is spoken of."""

import json
import logging
import re
from pathlib import Path

import pytest

from kagzi import RunContextFilter
from kagzi.cli.logs import JsonLines, TextLines
from kagzi.core.run.addresses import LAST_SERVER
from tests.cli.conftest import FLOWS, Installation
from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import running

NO_SCREEN = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": ""}


def test_open_prints_the_page_of_a_run_and_opens_it(installation: Installation, tmp_path: Path) -> None:
    started = installation.run("start", "echo", "1", "--json")
    run = json.loads(started.stdout)
    assert run["url"].endswith(f"/runs/{run['run_id']}")
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    env = {**NO_SCREEN, "KAGZI_ADDRESS": installation.address, "BROWSER": f"{browser} %s"}
    done = kagzi_inline("open", run["run_id"][:20], env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{run['url']}\n", "")
    assert opened.read_text().strip() == run["url"]


def test_without_a_browser_it_says_so(installation: Installation) -> None:
    env = {**NO_SCREEN, "KAGZI_ADDRESS": installation.address}
    done = kagzi_inline("open", env=env)
    assert done.returncode == 0
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stdout.endswith("/runs\n")
    assert "open the address" in done.stderr


def test_without_pages_it_says_what_to_do(tmp_path: Path) -> None:
    with running("server", "--db", f"sqlite:///{tmp_path}/k.db", "--listen", "127.0.0.1:0", "--http", "off") as server:
        address = server.says(r"grpc=(\S+)")[1]
        done = kagzi_inline("open", "--address", address)
    assert done.returncode == 1
    assert "has no pages" in done.stderr
    assert "--http" in done.stderr


def test_what_commands_say_of_a_run_names_its_page(installation: Installation) -> None:
    run_id = installation.run("start", "w").stdout.strip()
    page = f"/runs/{run_id}\n"
    for words in (("pause", run_id), ("resume", run_id), ("signal", run_id, "go", "1"), ("cancel", run_id)):
        assert page in installation.run(*words).stderr, words
    waited = installation.run("start", "w", "--wait", "--timeout", "1ms")
    assert re.search(r"run (\S+) started\n  http://\S+/runs/\1\n", waited.stderr)


def test_warnings_about_a_run_name_its_page(tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS)
    options = ("--db", f"sqlite:///{tmp_path}/k.db", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
    with running("server", *options) as server:
        address = server.says(r"grpc=(\S+)")[1]
        with running("worker", str(tmp_path / "flows.py"), "--address", address) as worker:
            worker.says("serves")
            run = json.loads(kagzi_inline("start", "fails", "--json", "--address", address).stdout)
            assert worker.says(r"step 'charge' failed.* (http://\S+)$")[1] == run["url"]


def test_lines_of_a_log_have_the_page_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def line(level: int, form: logging.Formatter, **fields: str) -> str:
        record = logging.LogRecord("shop", level, "", 0, "hello", None, None)
        vars(record).update(fields)
        RunContextFilter().filter(record)
        return form.format(record)

    about = {"run_id": "r1", "namespace": "team a"}
    monkeypatch.setattr(LAST_SERVER, "http_url", "")
    assert "http" not in line(logging.ERROR, TextLines(), **about)
    monkeypatch.setattr(LAST_SERVER, "http_url", "http://x/kagzi")
    page = "http://x/kagzi/runs/r1?namespace=team+a"
    assert line(logging.WARNING, TextLines(), **about).endswith(f" {page}")
    assert page not in line(logging.INFO, TextLines(), **about)
    assert json.loads(line(logging.INFO, JsonLines(), **about))["run_url"] == page
    assert "run_url" not in json.loads(line(logging.INFO, JsonLines()))
