"""Everything that `from kagzi import ...` offers is described, argument by argument, in the committed reference."""

import importlib.util
from pathlib import Path
from types import ModuleType

import griffe
import pytest

import kagzi
from tests.docs.snippets import ROOT

EXAMPLE = '''
"""A package to try the rules on."""

__all__ = ["Record", "call"]


class Base:
    def inherited(self, size: int) -> None:
        """Has `size`."""


class Record(Base):
    """A record with `other`."""

    described: int  #: what it is
    bare: int

    def method(self, a: int, *, b: int) -> None:
        """Does something.

        Args:
            a: The first.
        """

    def silent(self) -> None: ...


def call(c: int) -> None:
    """Does something with `c`."""
'''


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_reference", ROOT / "scripts" / "api_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_everything_exported_is_described_and_the_pages_say_so(reference: ModuleType) -> None:
    api = reference.Api(griffe.load("kagzi", search_paths=[str(ROOT / "src")]))
    assert list(api.complaints()) == []
    committed = {path.name: path.read_text() for path in (ROOT / "docs/reference/python").glob("*.md")}
    assert sorted(committed) == sorted(api.pages())
    assert [name for name, text in api.pages().items() if committed[name] != text] == [], "run `make gen`"


def test_every_exported_name_has_a_heading() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs/reference/python").glob("*.md"))
    missing = [name for name in kagzi.__all__ if f"\n## {name}\n" not in pages and name != "__version__"]
    assert missing == []


def test_what_is_not_described_is_named(reference: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "sample_package.py").write_text(EXAMPLE)
    package = griffe.load("sample_package", search_paths=[str(tmp_path)])
    api = reference.Api(package, [reference.Page("p.md", "P", "", ("Record",))])
    assert list(api.complaints()) == [
        "call is exported and on no page: add it to PAGES in scripts/api_reference.py",
        "Record.bare is not described: put a `#: comment` behind it",
        "Record.method: the argument 'b' is not described",
        "Record.silent has no docstring",
    ]
    [page] = [text for name, text in api.pages().items() if name == "p.md"]
    assert "| `described` | `int` | What it is |" in page
    assert "### Record.inherited" in page
