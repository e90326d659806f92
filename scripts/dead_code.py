"""Finds unused names in src/: `python scripts/dead_code.py`. Exit status 1 if there is one.

Tests do not count as users: code that only tests call is dead. Users are the package with its generated services, the
examples, the benchmarks, the scripts, and docs/reference/python, which describes each member of a public class.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parent.parent
USERS = ("src", "examples", "bench", "scripts")
GENERATED = ("*/kagzi/v1/*_pb2.py", "*/kagzi/v1/*.pyi")  # *_pb2_grpc.py calls our implementations
CALLED_BY_OTHERS = (
    "__*__",  # Python
    "capture_signals", "main_loop",  # uvicorn
    "set_quit",  # pdb
    "convert", "format_commands", "format_epilog", "get_metavar", "list_commands",  # click
    "Check", "List",  # gRPC's health service
    "pytest_*", "fixture_name",  # pytest, from kagzi.testing.pytest_plugin
    "call_exception_handler", "get_debug", "get_task_factory", "_timer_handle_cancelled",  # asyncio, on an event loop
    "on_ws_*", "pause_writing", "resume_writing",  # picows
    "num_tickets",  # ssl
    "AesGcm",  # users, from kagzi.crypto
    "OtlpExporter",  # users, from kagzi.otel
    # OpenTelemetry
    "export", "timeout_millis", "is_recording", "add_link", "add_event", "record_exception", "update_name",
)  # fmt: skip
BY_VALUE = ("SIGNAL", "CHILD", "RACE", "PATCH", "ABANDONED")  # they arrive as numbers, so no code names them
KEPT = ("_ending",)  # a task that would be garbage-collected without a reference
BY_POSITION = ("f",)  # in the longest overload of Context.parallel
# Still used by tests only: this list may only get shorter.
KNOWN = ("NO_RETRY", "is_owner")
DECORATORS = ["@*.command*", "@*.group*", "@overload", "@workflow*", "@step*", "@atexit.*"]


def documented() -> set[str]:
    """Members of public classes: `### Retry.forever`, and rows of the attribute tables."""
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference" / "python").glob("*.md"))
    return {*re.findall(r"^### \w+\.(\w+)$", pages, re.MULTILINE), *re.findall(r"^\| `(\w+)` \|", pages, re.MULTILINE)}


def quoted() -> Iterator[str]:
    """Names that are used in strings: columns, attributes that are read by name, and statuses in SQL."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                yield node.value
    for path in (ROOT / "src").rglob("*.sql"):
        yield from re.findall(r"\{[A-Z_]+\.([A-Z_]+)\}", path.read_text())


def main() -> int:
    finder = Vulture(ignore_names=list(CALLED_BY_OTHERS), ignore_decorators=DECORATORS)
    finder.scavenge([ROOT / path for path in USERS], exclude=list(GENERATED))
    used = {*BY_VALUE, *KEPT, *BY_POSITION, *KNOWN, *documented(), *quoted()}
    own = ROOT / "src" / "kagzi"
    unused = [
        item
        for item in finder.get_unused_code(min_confidence=60)
        if item.name not in used and own in item.filename.parents and own / "v1" not in item.filename.parents
    ]
    for item in unused:
        print(item.get_report())
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main())
