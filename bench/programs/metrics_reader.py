"""Reads the metrics of a server, like Prometheus: once for each line of its input, over one connection. A separate
process, so that its CPU does not count as the client's.

python -m bench.programs.metrics_reader https://127.0.0.1:8080/metrics
"""

import os
import ssl
import sys
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit


def main() -> None:
    parts, key, authority = urlsplit(sys.argv[1]), os.environ.get("KAGZI_API_KEY"), os.environ.get("KAGZI_TLS_CA")
    connection = HTTPConnection(parts.netloc)
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.netloc, context=ssl.create_default_context(cafile=authority))
    for _line in sys.stdin:
        connection.request("GET", parts.path, headers={"Authorization": f"Bearer {key}"} if key else {})
        response = connection.getresponse()
        read = len(response.read())
        if response.status != 200:
            raise SystemExit(f"the server answered with {response.status} {response.reason}")
        print(read, flush=True)


if __name__ == "__main__":
    main()
