"""A real `kagzi server` with TLS, in two processes; commands and a worker reach it by option, environment and file."""

import urllib.request
from pathlib import Path
from ssl import create_default_context

import pytest

from tests.support.certificates import Authority
from tests.support.kagzi_inline import kagzi_inline
from tests.support.kagzi_process import running

NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
FLOWS = """
from kagzi import Context, workflow

@workflow
async def hello(ctx: Context, name: str) -> str:
    return f"Hello, {name}!"
"""


def test_processes_with_client_certificates(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    served, mine = authority.issue("server"), authority.issue("mine")
    files = ("--tls-cert", served.cert, "--tls-key", served.key, "--tls-client-ca", authority.path)
    (tmp_path / "flows.py").write_text(FLOWS)
    monkeypatch.chdir(tmp_path)
    with running("server", "--db", postgres_url, "--processes", "2", *NO_PORTS, *files, cwd=tmp_path) as server:
        ready = server.says(r"kagzi server ready grpc=(https://\S+) http=(https://\S+) store=")
        address = ("--address", ready[1])
        typed = ("--tls-ca", authority.path, "--tls-cert", mine.cert, "--tls-key", mine.key)
        assert kagzi_inline("list", *address, *typed, "--json").stdout == "[]\n"
        half = kagzi_inline("list", *address, "--tls-cert", mine.cert)
        assert (half.returncode, "--tls-cert" in half.stderr) == (2, True)
        environment = {"KAGZI_TLS_CA": authority.path, "KAGZI_TLS_CERT": mine.cert, "KAGZI_TLS_KEY": mine.key}
        with running("worker", "flows.py", *address, cwd=tmp_path, env=environment) as worker:
            worker.says("worker")
            (tmp_path / "kagzi.toml").write_text(
                f'address = "{ready[1]}"\ntls_ca = "{authority.path}"\n'
                f'client_tls_cert = "{mine.cert}"\nclient_tls_key = "{mine.key}"\n'
            )
            assert kagzi_inline("start", "hello", "ada", "--wait").stdout == "Hello, ada!\n"
        context = create_default_context(cafile=authority.path)
        context.load_cert_chain(*mine)
        with urllib.request.urlopen(f"{ready[2]}/readyz", timeout=30, context=context) as answer:
            assert b"2 of 2 processes" in answer.read()
