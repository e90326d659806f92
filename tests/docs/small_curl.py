"""What the pages use of curl, for machines that have none."""

import argparse
import sys
from pathlib import Path

import httpx


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-N", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("-o", dest="output")
    parser.add_argument("-w", dest="write_out", default="")
    options = parser.parse_args()
    headers = {name: value.strip() for name, _, value in (each.partition(":") for each in options.headers)}
    if options.json is not None:
        headers["Content-Type"] = "application/json"
    method = options.method or ("GET" if options.json is None else "POST")
    answer = httpx.request(method, options.url, headers=headers, content=options.json, timeout=60)
    if options.output:
        Path(options.output).write_bytes(answer.content)
    else:
        sys.stdout.write(answer.text)
    sys.stdout.write(options.write_out.replace("%{http_code}", str(answer.status_code)).replace("\\n", "\n"))


if __name__ == "__main__":
    main()
