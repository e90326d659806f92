"""Reads the metrics of a server, like Prometheus: once for each line of its input, over one connection. A separate
process, so that its CPU does not count as the client's.

python -m bench.programs.metrics_reader https://127.0.0.1:8080/metrics
"""

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection, RemoteDisconnected
from urllib.parse import urlsplit


def main() -> None:
    parts, key, authority = urlsplit(sys.argv[1]), os.environ.get("KAGZI_API_KEY"), os.environ.get("KAGZI_TLS_CA")
    connection = HTTPConnection(parts.netloc)
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.netloc, context=ssl.create_default_context(cafile=authority))
    for _line in sys.stdin:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            response = answer_to(connection, parts.path, headers)
        except RemoteDisconnected:  # the server closes a connection that was idle for seconds
            connection.close()
            response = answer_to(connection, parts.path, headers)
        read = len(response.read())
        if response.status != 200:
            raise SystemExit(f"the server answered with {response.status} {response.reason}")
        print(read, flush=True)


def answer_to(connection: HTTPConnection, path: str, headers: dict[str, str]) -> HTTPResponse:
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


if __name__ == "__main__":
    main()
