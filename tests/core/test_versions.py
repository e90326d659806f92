"""Which version is the newer, which one a new run gets, and what may not be done to versions."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kagzi.core.errors import NotFound, PreconditionFailed
from kagzi.core.workflow_types.versions import (
    VersionChange,
    VersionMark,
    best_first,
    check_change,
    compare_versions,
    default_version,
    version_for_start,
)


def version_records(*texts: str) -> list[VersionMark]:
    """`2!` is deprecated, `2*` was set as the default."""
    return [VersionMark("hello", text.rstrip("!*"), text.endswith("!"), text.endswith("*")) for text in texts]


@pytest.mark.parametrize(
    ("versions", "ordered"),
    [
        (["9", "10", "1"], ["10", "9", "1"]),
        (["v9", "v10", "v1"], ["v10", "v9", "v1"]),
        (["1.9", "1.10", "1.9.1"], ["1.10", "1.9.1", "1.9"]),
        (["2026-01-09", "2025-12-31"], ["2026-01-09", "2025-12-31"]),
        (["1", "01"], ["1", "01"]),
        (["beta", "2"], ["beta", "2"]),
    ],
)
def test_numbers_in_versions_count_as_numbers(versions: list[str], ordered: list[str]) -> None:
    assert list(best_first(versions)) == ordered


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=1, max_size=6))
def test_any_texts_have_one_order(versions: list[str]) -> None:
    ordered = best_first(versions)
    assert ordered == best_first(reversed(versions))
    for one, other in pairwise(ordered):
        assert compare_versions(one, other) > 0 > compare_versions(other, one)


@pytest.mark.parametrize(
    ("known", "default"),
    [((), None), (("1", "2"), "2"), (("1*", "2"), "1"), (("1", "2!"), "1"), (("1!", "2!"), None), (("9", "10"), "10")],
)
def test_the_default_is_what_was_set_or_the_highest_that_is_not_deprecated(
    known: tuple[str, ...], default: str | None
) -> None:
    assert default_version(version_records(*known)) == default


def test_a_start_is_pinned_to_what_it_asks_for_or_to_the_default() -> None:
    assert version_for_start("hello", "", []) == ""  # the first worker decides
    assert version_for_start("hello", "7", []) == "7"
    assert version_for_start("hello", "", version_records("1", "2")) == "2"
    assert version_for_start("hello", "1", version_records("1", "2")) == "1"
    assert version_for_start("hello", "3", version_records("1", "2")) == "3"  # waits for a worker that has it


def test_a_deprecated_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(PreconditionFailed, match=r"version 1 of hello is deprecated.*Ask for version 2.*--undo"):
        version_for_start("hello", "1", version_records("1!", "2"))
    with pytest.raises(PreconditionFailed, match=r"every version of hello is deprecated.*--undo"):
        version_for_start("hello", "", version_records("1!"))


@pytest.mark.parametrize(
    ("known", "version", "change", "error"),
    [
        (("1",), "9", "default", NotFound),
        (("1",), "9", "deprecate", NotFound),
        ((), "", "no_default", NotFound),
        (("1!", "2"), "1", "default", PreconditionFailed),
        (("1*", "2"), "1", "deprecate", PreconditionFailed),
    ],
)
def test_what_would_strand_new_runs_is_refused(
    known: tuple[str, ...], version: str, change: VersionChange, error: type[Exception]
) -> None:
    with pytest.raises(error):
        check_change(version_records(*known), "hello", version, change)


def test_the_rest_is_allowed() -> None:
    check_change(version_records("1", "2"), "hello", "2", "deprecate")  # the highest, but not set
    check_change(version_records("1!", "2*"), "hello", "1", "restore")
    check_change(version_records("1*", "2"), "hello", "2", "default")
    check_change(version_records("1*", "2"), "hello", "", "no_default")
