"""Names in src/ that nothing uses: `python scripts/dead_code.py`. Exit status 1 if there is one.

Tests are not users: what only they call is dead. Users are the package with its generated services, the examples, the benchmarks, the
scripts, and whoever reads docs/reference/python, where each member of a public class is described.
"""

import re
import sys
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parent.parent
USERS = ("src", "examples", "bench", "scripts")
GENERATED = ("*/kagzi/v1/*_pb2.py", "*/kagzi/v1/*.pyi")  # the services of *_pb2_grpc.py call what we implement
CALLED_BY_OTHERS = (
    "__getattr__", "__dir__",  # Python
    "capture_signals", "main_loop",  # uvicorn
    "convert", "format_commands", "format_epilog", "get_metavar", "list_commands",  # click
    "Check",  # gRPC's health service
)  # fmt: skip
# They arrive as numbers, or as names of columns and fields: no code needs to spell them.
BY_VALUE = ("SIGNAL", "CHILD", "RACE", "PATCH", "ABANDONED", "retry_request_id")
BY_POSITION = ("f",)  # of the longest signature that Context.parallel offers
# Asked by tests only, still: the list may only shrink.
KNOWN = ("NO_RETRY", "_step_id", "is_owner", "may_become")
DECORATORS = ["@*.command*", "@*.group*", "@overload", "@workflow*", "@step*"]


def documented() -> set[str]:
    """Members of public classes: `### Retry.forever`, and rows of the tables of attributes."""
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "reference" / "python").glob("*.md"))
    return {*re.findall(r"^### \w+\.(\w+)$", pages, re.MULTILINE), *re.findall(r"^\| `(\w+)` \|", pages, re.MULTILINE)}


def main() -> int:
    allowed = [*CALLED_BY_OTHERS, *BY_VALUE, *BY_POSITION, *KNOWN, *documented()]
    finder = Vulture(ignore_names=allowed, ignore_decorators=DECORATORS)
    finder.scavenge([ROOT / path for path in USERS], exclude=list(GENERATED))
    found = [item for item in finder.get_unused_code(min_confidence=60) if (ROOT / "src") in item.filename.parents]
    found = [item for item in found if "v1" not in item.filename.parts]
    for item in found:
        print(item.get_report())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
