"""`kagzi.X` is public, everything else is private; what is exported says that it is `kagzi.X`, wherever its file
lies."""

import ast
import pickle
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

import kagzi
from kagzi.core.error_details import ErrorDetail
from kagzi.sdk.client.operations.bulk import Bulk
from kagzi.sdk.client.operations.keys import Keys
from kagzi.sdk.client.operations.namespaces import Namespaces
from kagzi.sdk.client.operations.schedules import Schedules
from kagzi.sdk.client.operations.start_in import StartIn
from kagzi.sdk.client.operations.versions import Versions
from kagzi.sdk.client.operations.workers import Workers
from kagzi.sdk.client.operations.workflow_types import WorkflowTypes
from kagzi.sdk.workflow.failures import describe

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "kagzi"
ALIASES = {"Duration", "OnConflict", "__version__"}  # of types: they have no name of their own
NAMES = sorted(set(kagzi.__all__) - ALIASES)

# Of a client, imported when they are first used: `client.schedules` and the like.
LOADED_LATER = {
    cls.__name__: cls for cls in (Bulk, Keys, Namespaces, Schedules, StartIn, Versions, Workers, WorkflowTypes)
}

PUBLIC_MODULES = {
    "kagzi.sync",
    "kagzi.testing",  # to come, the test kit: examples/test_e10.py waits for it
    "kagzi.crypto",  # needs an extra, so it is not loaded with the rest
    "kagzi.otel",  # likewise
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_exported_bears_the_public_name(name: str) -> None:
    thing = getattr(kagzi, name)
    assert isinstance(thing, type | FunctionType)
    assert (thing.__module__, thing.__qualname__) == ("kagzi", name)
    assert pickle.loads(pickle.dumps(thing)) is thing  # noqa: S301  our own bytes
    typing.get_type_hints(thing, localns=LOADED_LATER)
    assert vars(kagzi)[name] is thing, "annotations in quotes are looked up there"


def test_nothing_else_bears_a_public_name() -> None:
    marked = [name for _, name in _marked()]
    assert sorted(marked) == NAMES


def _marked() -> Iterator[tuple[Path, str]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.decorator_list[0] if node.decorator_list else None
                if isinstance(first, ast.Name) and first.id == "exported":
                    yield path, node.name


def test_records_and_errors_survive_a_pickle_under_their_public_name() -> None:
    error = kagzi.StepError.of("charge", ErrorDetail(type="shop.Declined", message="no"), attempts=2)
    for value in (error, ErrorDetail(cause=ErrorDetail()), kagzi.Retry.attempts(2), kagzi.RunStatus.RUNNING):
        data = pickle.dumps(value)
        assert b"kagzi.core" not in data
        assert b"kagzi.sdk" not in data
        again = pickle.loads(data)  # noqa: S301  our own bytes
        assert type(again) is type(value)
        assert str(again) == str(value)


def test_the_documentation_and_the_examples_import_from_kagzi_only() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    private = re.compile(r"^\s*(?:from|import) (kagzi\.[\w.]+)", re.MULTILINE)
    taken = re.compile(r"^\s*from kagzi import (\([^)]*\)|.*)", re.MULTILINE)
    offences: list[str] = []
    for path in pages:
        text = path.read_text()
        offences += [
            f"{path.relative_to(ROOT)}: {module}" for module in private.findall(text) if module not in PUBLIC_MODULES
        ]
        for names in taken.findall(text):
            words = re.findall(r"\w+", re.sub(r"#.*|\bas \w+", "", names))
            offences += [f"{path.relative_to(ROOT)}: {word}" for word in words if word not in kagzi.__all__]
    assert not offences, offences


def test_the_reference_offers_for_import_what_is_exported_and_nothing_else() -> None:
    offered = [
        name
        for path in (ROOT / "docs" / "reference" / "python").glob("*.md")
        for name in re.findall(r"^`from kagzi import (\w+)`$", path.read_text(), re.MULTILINE)
    ]
    assert sorted(offered) == sorted(set(kagzi.__all__) - {"__version__"})


# --- the names of recorded errors -------------------------------------------------------------------------------------


def test_no_recorded_error_names_a_file_of_this_package() -> None:
    """Exported or not, whoever raises it."""
    classes = [cls for cls in _subclasses(BaseException) if cls.__module__.partition(".")[0] == "kagzi"]
    assert len(classes) > 25
    for cls in classes:
        error = cls.__new__(cls)
        vars(error).update(error=ErrorDetail(), metadata={}, retry_after=None)  # what every constructor sets
        detail = describe(error)
        for name in (detail.type, *detail.bases):
            assert name.startswith("kagzi.") <= (name.removeprefix("kagzi.") in kagzi.__all__), name


def test_no_error_is_named_in_the_source_by_its_file() -> None:
    offences = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r'"(kagzi\.(?!v1\.)[a-z_0-9.]+\.[A-Z]\w+)"', path.read_text())
    ]
    assert not offences


def _subclasses(cls: type[BaseException]) -> set[type[BaseException]]:
    classes = {cls}
    for each in cls.__subclasses__():
        classes |= _subclasses(each)
    return classes
