"""Property tests: each run draws other examples, and a failure can be repeated.

All properties of a run begin with one seed, which is printed if a test fails. Nothing is kept from one run to the next:
an example that failed must not fail a later run, which nobody else could repeat.
"""

import random

import pytest
from hypothesis import HealthCheck, core, settings
from hypothesis.vendor import pretty

SEED = "--hypothesis-seed"


def load_profile() -> None:
    """A busy machine is not a fault of what is tested: no example has a deadline, and making them may be slow."""
    too_slow = [HealthCheck.too_slow]
    settings.register_profile(
        "kagzi", settings(), deadline=None, suppress_health_check=too_slow, database=None, print_blob=True
    )
    settings.load_profile("kagzi")


def choose_seed(config: pytest.Config) -> None:
    """Must be called before hypothesis is configured. Processes of pytest-xdist get the seed as an option. Without the
    plugin of hypothesis there is no such option."""
    if getattr(config.option, "hypothesis_seed", "") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def print_examples() -> None:
    """schemathesis, which tests of the HTTP API use, replaces the printer by one that prints no values."""
    core.RepresentationPrinter = pretty.RepresentationPrinter  # pyright: ignore[reportPrivateImportUsage]  schemathesis does


def how_to_repeat(reporter: pytest.TerminalReporter) -> None:
    seed = getattr(reporter.config.option, "hypothesis_seed", None)
    if seed is not None and reporter.stats.get("failed"):
        reporter.section("properties")
        reporter.line(f'The examples of this run have the seed {seed}: make unit ARGS="TEST {SEED}={seed}"')
