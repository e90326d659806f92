"""A proxy that serves two servers in turn below a path, and buffers what they answer: nginx where there is one,
otherwise a small one that does as nginx does."""

import http.client
import itertools
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.timeouts import LOADED_MACHINE_S

NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  {folders}
  upstream servers {{ {servers} }}
  server {{
    listen 127.0.0.1:{port};
    location {path}/ {{
      proxy_pass http://servers/;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-Prefix {path};
      proxy_buffering on;
      proxy_read_timeout 1h;
    }}
  }}
}}
"""
_OF_A_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@contextmanager
def proxy(urls: Sequence[str], path: str, folder: Path) -> Iterator[str]:
    """The address, with a slash at its end."""
    hosts = [urlsplit(url).netloc for url in urls]
    nginx = shutil.which("nginx")
    with _own(hosts, path) if nginx is None else _nginx(nginx, hosts, path, folder) as port:
        yield f"http://127.0.0.1:{port}{path}/"


@contextmanager
def _nginx(program: str, hosts: Sequence[str], path: str, folder: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    text = NGINX.format(
        folder=folder,
        folders=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds),
        servers=" ".join(f"server {host};" for host in hosts),
        port=port,
        path=path,
    )
    (folder / "nginx.conf").write_text(text)
    process = subprocess.Popen([program, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        end = time.monotonic() + LOADED_MACHINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "error.log").read_text()
                assert time.monotonic() < end
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(LOADED_MACHINE_S)


class _Proxy(BaseHTTPRequestHandler):
    """Of one connection. `path` and `turns` are those of the proxy."""

    protocol_version = "HTTP/1.1"
    below = ""
    turns: Iterator[str] = iter(())

    def pass_on(self) -> None:
        if not self.path.startswith(f"{self.below}/"):
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        server = http.client.HTTPConnection(next(self.turns), timeout=LOADED_MACHINE_S)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_HOP}
        headers["X-Forwarded-Prefix"] = self.below
        try:
            server.request(self.command, self.path.removeprefix(self.below), body or None, headers)
            self._answer(server.getresponse())
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            server.close()

    def _answer(self, response: http.client.HTTPResponse) -> None:
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _OF_A_HOP:
                self.send_header(name, value)
        if response.getheader("X-Accel-Buffering") == "no":
            self.send_header("Connection", "close")
            self.end_headers()
            while part := response.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()
            return
        whole = response.read()
        self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        self.wfile.write(whole)

    def log_message(self, format: str, *args: object) -> None:
        pass


for _method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"):
    setattr(_Proxy, f"do_{_method}", _Proxy.pass_on)


@contextmanager
def _own(hosts: Sequence[str], path: str) -> Iterator[int]:
    handler = type("Proxy", (_Proxy,), {"below": path, "turns": itertools.cycle(hosts)})
    with serving(handler) as port:
        yield port


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """In threads of this process. The port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(LOADED_MACHINE_S)
