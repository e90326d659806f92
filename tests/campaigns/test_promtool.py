"""Prometheus' own tool takes the alert rules, finds that they fire when they should, and takes a page of metrics."""

import shutil
import subprocess

import httpx

from kagzi import Kagzi, Worker
from kagzi.server.app import Server
from kagzi.server.config import ServerConfig
from kagzi.server.listen import ListenAddress
from tests.docs.test_monitoring_files import RULE_TESTS, RULES
from tests.server.test_metrics import greet

ANY_PORT = ListenAddress("127.0.0.1", 0)


def promtool(*arguments: str, text: str | None = None) -> str:
    path = shutil.which("promtool")
    assert path, "promtool is not installed: make promtool"
    done = subprocess.run([path, *arguments], input=text, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_rules_are_rules() -> None:
    assert "15 rules found" in promtool("check", "rules", str(RULES))


def test_the_rules_fire_when_they_should() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(RULE_TESTS))


async def test_the_page_has_no_fault_in_form_or_names() -> None:
    server = Server(ServerConfig(db=":memory:", listen=ANY_PORT, http=ANY_PORT))
    await server.start()
    try:
        async with Worker(server.grpc_address, workflows=[greet]), Kagzi.connect(server.grpc_address) as client:
            await client.run(greet, "ada")
            async with httpx.AsyncClient(base_url=server.http_url) as http:
                page = (await http.get("/metrics")).text
    finally:
        await server.stop(0)
    assert promtool("check", "metrics", text=page) == ""
