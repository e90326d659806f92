"""Reads the metrics of a server, like Prometheus: once for each line of its input. A process of its own, whose CPU is
not that of the client.

python -m bench.programs.metrics_reader https://127.0.0.1:8080/metrics
"""

import os
import ssl
import sys
import urllib.request


def main() -> None:
    key, authority = os.environ.get("KAGZI_API_KEY"), os.environ.get("KAGZI_TLS_CA")
    request = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Bearer {key}"} if key else {})
    context = ssl.create_default_context(cafile=authority) if authority else None
    for _line in sys.stdin:
        with urllib.request.urlopen(request, context=context) as response:
            print(len(response.read()), flush=True)


if __name__ == "__main__":
    main()
