"""Names in src/ that nothing uses. Tests, examples and benchmarks count as users, but may themselves hold unused names
(fields of sample models, methods found by name)."""

import sys
from pathlib import Path

from vulture import Vulture

USERS = ("src", "tests", "examples", "bench", "scripts")
# Words of the contract that no code needs to spell (they arrive as numbers), and hooks that Python, uvicorn and click call.
ALLOWED = [
    "__getattr__", "__dir__", "capture_signals", "main_loop", "list_commands", "format_commands",
    "SIGNAL", "CHILD", "RACE", "PATCH", "ABANDONED",
]  # fmt: skip


def main() -> int:
    finder = Vulture(
        ignore_names=ALLOWED, ignore_decorators=["@*.command*", "@*.group*", "@overload", "@workflow*", "@step*"]
    )
    finder.scavenge([path for path in USERS if Path(path).is_dir()], exclude=["*/kagzi/v1/*"])
    found = [item for item in finder.get_unused_code(min_confidence=60) if Path(item.filename).parts[0] == "src"]
    for item in found:
        print(item.get_report())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
