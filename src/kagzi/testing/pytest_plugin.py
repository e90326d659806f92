"""The pytest plugin: fixture `kagzi_env`, marker `kagzi_crash_everywhere`. pytest loads it at every start, so imports
are deferred until they are used."""

import inspect
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Literal, get_args

import pytest

if TYPE_CHECKING:
    from .env.env import TestEnv

SCOPE = "kagzi_env_scope"
CRASH_MARKER = "kagzi_crash_everywhere"
Scope = Literal["session", "package", "module", "class", "function"]
_SCOPES: tuple[Scope, ...] = get_args(Scope)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(SCOPE, f"scope of the fixture kagzi_env: {', '.join(_SCOPES)}", default="function")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{CRASH_MARKER}: `await kagzi_env.run(workflow, input)` runs the workflow once for each of its boundaries, "
        "with the worker killed there",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a marked test that ran no workflow: it would have tested nothing."""
    env: TestEnv | None = getattr(item, "funcargs", {}).get("kagzi_env")
    if item.get_closest_marker(CRASH_MARKER) is None:
        yield
        return
    if env is None:
        pytest.fail(f"A test with the marker {CRASH_MARKER} needs the fixture kagzi_env.", pytrace=False)
    with env.crashing_runs() as reports:
        yield
    if not reports:
        pytest.fail(
            f"No workflow was run in this test, which has the marker {CRASH_MARKER}: write "
            "await kagzi_env.run(workflow, input), or call kagzi_env.crash_everywhere(...) instead of the marker.",
            pytrace=False,
        )


def _scope(fixture_name: str, config: pytest.Config) -> Scope:
    wanted = str(config.getini(SCOPE))
    for scope in _SCOPES:
        if scope == wanted:
            return scope
    raise pytest.UsageError(f"{SCOPE}={wanted!r} must be one of {', '.join(_SCOPES)}.")


@pytest.fixture(scope=_scope)
def kagzi_env() -> "Iterator[TestEnv]":
    """A `kagzi.testing.TestEnv`: the real engine and SDK in this process, on SQLite in memory, in virtual time.

    It opens on first use, in the event loop of the test.
    """
    from .env.env import TestEnv  # noqa: PLC0415  see above

    env = TestEnv()
    yield env
    env.drop()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say what to install for async tests: pytest's own error, about coroutines, does not."""
    function = getattr(item, "function", None)
    if "kagzi_env" not in getattr(item, "fixturenames", ()) or not inspect.iscoroutinefunction(function):
        return
    plugins = item.config.pluginmanager
    if any(item.get_closest_marker(name) for name in ("asyncio", "anyio")):
        return
    if not any(plugins.hasplugin(name) for name in ("asyncio", "anyio")):
        pytest.fail(
            "This test is async, and no plugin is installed that runs async tests. Install pytest-asyncio and set "
            'asyncio_mode = "auto" in the section [tool.pytest.ini_options] of pyproject.toml; or install anyio.',
            pytrace=False,
        )
    pytest.fail(
        "This test is async, and nothing says how to run it. Mark it @pytest.mark.asyncio (pytest-asyncio) or "
        '@pytest.mark.anyio (anyio), or set asyncio_mode = "auto" in the section [tool.pytest.ini_options] of '
        "pyproject.toml.",
        pytrace=False,
    )
