"""Tests of one group share a port or a server: they must run one after the other, in one process."""

import os

import pytest

GROUP = "a-group"


@pytest.mark.xdist_group(GROUP)
def test_groups_are_seen() -> None:
    """pytest-xdist writes the group behind the name of a test, and goes by that. JOBS=0: there is one process
    anyway."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    assert processes == 1 or f"@{GROUP}" in os.environ["PYTEST_CURRENT_TEST"]
