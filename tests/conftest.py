"""Fixtures every test may use, and the rule that a machine's run skips nothing.

`postgres_url`   a new empty PostgreSQL database for this test, as a URL for asyncpg and libpq; dropped afterwards
`migrated_postgres_url`   the same, with the schema in it
`postgres`       the server it is on: `with postgres.database(template=url)` for more databases or copies of one
"""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.support import properties
from tests.support.described_types import types_described_once
from tests.support.migrated import MigratedPostgres, copied_into_memory, migrated_postgres_databases
from tests.support.postgres import Databases, PostgresAbsentError, postgres_databases
from tests.support.raised_limits import raised_limits

MEMORY = Path("/dev/shm")
LEAST_FREE_BYTES = 4 * 2**30


def keep_files_in_memory() -> None:
    """Databases of tests lie in memory, where the system has a place for that: making one takes a tenth of the time,
    and what a killed process has written stays. Campaigns measure, and use the disk."""
    campaigns = os.environ.get("KAGZI_TEST_CAMPAIGNS")
    if "TMPDIR" in os.environ or campaigns or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    if shutil.disk_usage(MEMORY).free >= LEAST_FREE_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def start_alike() -> None:
    """However this was started: a shell's background job ignores Ctrl-C (with nohup, SIGHUP) and its children inherit
    that, but tests send it. The C core of gRPC writes lines of its own to stderr unless told not to before it is
    imported. And a shell that forbids compiled files would have every one of a thousand servers and workers compile the
    same modules again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


start_alike()
properties.load_profile()
keep_files_in_memory()  # before anybody asks for a temporary directory


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    properties.choose_seed(config)


def pytest_runtest_setup() -> None:
    properties.print_examples()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half a million objects of ten thousand tests stay to the end: nobody looks for garbage among them, neither while
    they are made nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Databases]:
    """A PostgreSQL server of this test process (or the one that KAGZI_TEST_POSTGRES_URL names), started when needed."""
    try:
        with postgres_databases() as databases:
            yield databases
    except PostgresAbsentError as absent:
        pytest.skip(str(absent))


@pytest.fixture
def postgres_url(postgres: Databases) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_databases(postgres: Databases) -> Iterator[MigratedPostgres]:
    with migrated_postgres_databases(postgres) as migrated:
        yield migrated


@pytest.fixture
def migrated_postgres_url(migrated_databases: MigratedPostgres) -> Iterator[str]:
    with migrated_databases.database() as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def quick_copies_and_raised_limits() -> Iterator[None]:
    with copied_into_memory(), types_described_once(), raised_limits():
        yield


def pytest_xdist_auto_num_workers() -> int:
    """Four for two processors: much of the time tests wait for processes, leases and timers."""
    return max(2, (os.cpu_count() or 1) * 2)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under CI=true a skipped test is a failed run: green must mean that everything was looked at."""
    if _skips_fail(session.config) and _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    config = terminalreporter.config
    properties.how_to_repeat(terminalreporter)
    skipped = _skipped(config)
    absent = [report for report in skipped if "PostgreSQL is absent" in str(report.longrepr)]
    if absent:
        terminalreporter.section("PostgreSQL IS ABSENT", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(absent)} tests did not run. Kagzi on PostgreSQL is NOT proven by this run.")
    if skipped and _skips_fail(config):
        terminalreporter.section("SKIPPED UNDER CI", sep="!", red=True, bold=True)
        terminalreporter.line(f"CI=true: {len(skipped)} skipped, and a skip is a failure:")
        for report in skipped:
            terminalreporter.line(f"  {report.nodeid}")


def _skips_fail(config: pytest.Config) -> bool:
    """True in the process that reports; the processes of pytest-xdist leave the verdict to it."""
    return os.environ.get("CI") == "true" and not hasattr(config, "workerinput")


def _skipped(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None else reporter.stats.get("skipped", [])
