"""Runs the whole test suite: `python scripts/suite.py [arguments of pytest]`. Exit status 0 if every test passed.

Ten thousand tests share two processors, and a test may fail because it got no CPU for seconds. So the few that failed
are repeated after all others, one by one and five times each. A test that fails again has failed. Tests that pass each
time are listed in a section below the original failure and in build/flaky-tests.txt: they must be repaired, but they do
not block a change. More than three are always treated as failures.

The examples of properties depend on a seed, which is another one in each run. The tests that are repeated get the same
seed, so a property meets the same examples again.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from kagzi.system import SystemRng

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "flaky-tests.txt"
MOST = 3
TIMES = 5
SEED = "--hypothesis-seed="
GROUP = re.compile(r"@[\w-]+$")
TESTS_FAILED = 1  # pytest's exit status; any other has another cause than a test


def main(arguments: list[str]) -> int:
    REPORT.unlink(missing_ok=True)
    seed = next((each for each in arguments if each.startswith(SEED)), f"{SEED}{int(SystemRng().fraction() * 2**32)}")
    arguments = [*arguments, seed]
    with tempfile.TemporaryDirectory() as cache:  # for this run only: it lists the failed tests
        status = pytest([*arguments, "-o", f"cache_dir={cache}"])
        failed = failed_tests(Path(cache)) if status == TESTS_FAILED else []
    if not failed or len(failed) > MOST:
        return status
    if any(not passes_alone(test, seed) for test in failed):
        return TESTS_FAILED
    announce(failed)
    return 0


def pytest(arguments: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def failed_tests(cache: Path) -> list[str]:
    """Ids of the failed tests; empty if a whole file could not be read, or if only a skip made the run fail. To the ids
    of grouped tests, xdist appends "@" and the group."""
    kept = cache / "v" / "cache" / "lastfailed"
    known: list[str] = sorted(json.loads(kept.read_text())) if kept.exists() else []
    failed = [GROUP.sub("", test) for test in known]
    return failed if all("::" in test for test in failed) else []


def passes_alone(test: str, seed: str) -> bool:
    print(f"\n{test} failed: again, {TIMES} times, with {seed}", flush=True)
    again = ["--numprocesses", "0", "--quiet", "-p", "no:cacheprovider", seed, test]
    return all(pytest(again) == 0 for _ in range(TIMES))


def announce(flaky: list[str]) -> None:
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("".join(f"{test}\n" for test in flaky))
    print(f"\n{'!' * 20} FLAKY: failed beside others, passed {TIMES} times alone. Mend them {'!' * 20}")
    print("\n".join(flaky))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
