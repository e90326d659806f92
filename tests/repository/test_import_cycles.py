"""The checker of import cycles sees those that the interpreter does not; the SDK has none."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("import_cycles", ROOT / "scripts" / "import_cycles.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "back",
    [
        "from .. import one",
        "from ..one import f",
        "import kagzi.one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from kagzi.one import f",
        "def g():\n    from ..one import f",
    ],
)
def test_every_import_counts(checker: ModuleType, tmp_path: Path, back: str) -> None:
    package = tmp_path / "kagzi"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from .inner import two\nfrom .inner.two import g\ndef f(): ...\n")
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "two.py").write_text(f"{back}\n")
    imports = checker.read_imports(checker.find_modules(tmp_path))
    assert checker.find_cycles(imports) == [["kagzi.inner.two", "kagzi.one"]]


def test_a_package_without_cycle(checker: ModuleType) -> None:
    assert checker.find_cycles({"a": {"b", "c"}, "b": {"c"}, "c": set(), "d": {"a"}}) == []


def test_the_sdk_has_none(checker: ModuleType) -> None:
    cycles = checker.find_cycles(checker.read_imports(checker.find_modules()))
    assert [cycle for cycle in cycles if any(name.startswith("kagzi.sdk") for name in cycle)] == []
