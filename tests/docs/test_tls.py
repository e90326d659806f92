"""The commands of the page on TLS make certificates that a server and clients work with."""

import subprocess
from pathlib import Path

from tests.docs.snippets import blocks
from tests.support.kagzi_process import kagzi, running

PAGE = "docs/how-to/tls.md"
NO_PORTS = ("--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")


def test_the_certificates_of_the_page_are_good_for_a_server(tmp_path: Path) -> None:
    commands = [block.text for block in blocks(PAGE) if block.language == "sh"]
    (openssl,) = (text for text in commands if text.startswith("openssl"))
    subprocess.run(["bash", "-e", "-c", openssl], cwd=tmp_path, check=True, capture_output=True)
    (serve,) = (text for text in commands if text.startswith("kagzi server --tls-cert"))
    with running(*serve.split()[1:], *NO_PORTS, cwd=tmp_path) as server:
        address = server.says(r"kagzi server ready grpc=(https://\S+)")[1]
        assert kagzi("list", "--address", address, "--tls-ca", "ca.pem", "--json", cwd=tmp_path).stdout == "[]\n"
        assert kagzi("list", "--address", address, cwd=tmp_path).returncode == 4
