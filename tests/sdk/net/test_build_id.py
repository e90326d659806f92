"""The default build id: the same for the same code wherever it lies, another one as soon as code of the project
changes."""

import importlib
import logging
import os
import runpy
import sys
import zipfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from kagzi.sdk.worker import build_id
from kagzi.sdk.worker.build_id import default_build_id

PROJECT = {
    "app/__init__.py": "",
    "app/flows.py": """
from __future__ import annotations
import json, os as operating_system, words
import app.prices as prices; import app.taxes
from .steps import (
    charge,  # (now)
    refund as give_back,
)
from kagzi import Context
from typing import TYPE_CHECKING
if TYPE_CHECKING: from .shapes import Shape

async def flow(ctx: Context) -> None:
    from app import late
    import installed.thing
""",
    "app/steps.py": "from .deep.inner import *\nfrom . import \\\n    beside\ncharge = refund = None\n",
    "app/deep/inner.py": "from ..words_of_app import hello\n",  # `deep` is a namespace: it has no __init__.py
    "app/words_of_app.py": "hello = 'hello'\n",
    "app/beside.py": "",
    "app/prices.py": "",
    "app/taxes.py": "",
    "app/shapes.py": "",
    "app/late.py": "",
    "app/unused.py": "",
    "words.py": "import app.flows  # in a circle\n",
    "elsewhere.py": "",
    "notes.txt": "",
    "site-packages/installed/__init__.py": "",
    "site-packages/installed/thing.py": "",
}
HASHED = [
    "app/__init__.py",
    "app/flows.py",
    "app/steps.py",
    "app/deep/inner.py",
    "app/words_of_app.py",
    "app/beside.py",
    "app/prices.py",
    "app/taxes.py",
    "app/shapes.py",
    "app/late.py",
    "words.py",
]
OTHERS = [name for name in PROJECT if name not in HASHED]

Flow = Callable[..., Coroutine[Any, Any, Any]]


@pytest.fixture(autouse=True)
def _modules_and_paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    forget()


def forget() -> None:
    """What a new process would not have loaded."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("app", "words", "elsewhere", "installed"):
            del sys.modules[name]
    importlib.invalidate_caches()


def write(folder: Path, files: dict[str, str] = PROJECT) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def loaded(*paths: Path, module: str = "app.flows") -> Flow:
    forget()
    sys.path[:0] = [str(path) for path in paths]
    flow: Flow = importlib.import_module(module).flow
    return flow


def build_of(folder: Path, *, modules_max: int = build_id.MODULES) -> str:
    try:
        return default_build_id([loaded(folder, folder / "site-packages")], modules_max=modules_max)
    finally:
        sys.path[:2] = []


def test_the_same_code_is_the_same_build_wherever_it_lies(tmp_path: Path) -> None:
    first = build_of(write(tmp_path / "one"))
    assert first.startswith("auto-")
    assert build_of(write(tmp_path / "deeper" / "two")) == first
    assert build_of(tmp_path / "one") == first
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.mkdir("app/deep")  # without an entry of its own it would not be a namespace
        for name, text in PROJECT.items():
            archive.writestr(name, text)
    assert build_of(tmp_path / "app.zip") == first
    (tmp_path / "one" / "app" / "flows.py").write_text(PROJECT["app/flows.py"].replace("\n", "\r\n"), newline="")
    assert build_of(tmp_path / "one") == first


def test_only_what_the_project_imports_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_id, "_loaded", {})  # a worker of another test may serve workflows of Kagzi's own
    first = build_of(write(tmp_path))
    for name in (*HASHED, *OTHERS):
        (tmp_path / name).write_text(PROJECT[name] + "# changed\n")
        changed = build_of(tmp_path) != first
        assert changed == (name in HASHED), name
        (tmp_path / name).write_text(PROJECT[name])
    assert build_of(tmp_path) == first
    assert not any(name.partition(".")[0] == "kagzi" for name in build_id._loaded)


def test_a_package_that_is_installed_counts_if_the_workflow_is_in_it(tmp_path: Path) -> None:
    place = write(tmp_path / "site-packages")
    first = default_build_id([loaded(place)])
    sys.path.pop(0)
    (place / "app" / "late.py").write_text("x = 1\n")
    assert default_build_id([loaded(place)]) != first


def test_a_running_process_keeps_the_build_that_it_has_loaded(tmp_path: Path) -> None:
    flow = loaded(write(tmp_path))
    first = default_build_id([flow])
    (tmp_path / "app" / "steps.py").write_text("charge = refund = 1\n")
    assert default_build_id([flow]) == first  # this is not the code that it executes
    assert build_of(tmp_path) != first


def test_a_script_is_the_same_build_as_the_module(tmp_path: Path) -> None:
    text = """
import words
from kagzi.sdk.worker.build_id import default_build_id
async def flow(ctx): ...
result = default_build_id([flow])
"""
    write(tmp_path, {"app.py": text, "words.py": ""})
    sys.path.insert(0, str(tmp_path))
    forget()
    as_script = runpy.run_path(str(tmp_path / "app.py"), run_name="__main__")["result"]
    forget()
    as_main = runpy.run_module("app", run_name="__main__", alter_sys=True)["result"]
    forget()
    assert as_script == as_main == importlib.import_module("app").result
    (tmp_path / "words.py").write_text("x = 1")
    forget()
    assert runpy.run_path(str(tmp_path / "app.py"), run_name="__main__")["result"] != as_script


def test_code_without_source_counts_as_it_was_compiled() -> None:
    def typed_in(text: str) -> Flow:
        names: dict[str, Any] = {"__name__": "nowhere"}
        exec(f"async def flow(ctx):\n    return {text}\n", names)  # noqa: S102  as at a prompt
        flow: Flow = names["flow"]
        return flow

    first = default_build_id([typed_in("ctx in {'a', 'b', 'c'}, lambda: 1")])
    assert default_build_id([typed_in("ctx in {'a', 'b', 'c'}, lambda: 1")]) == first
    others = {default_build_id([typed_in(text)]) for text in ("ctx in {'a', 'b', 'd'}", "2", "ctx.b, lambda: 2")}
    assert len({first, *others}) == 4
    assert default_build_id([]) == ""


def test_a_compiled_module_counts_with_its_file(tmp_path: Path) -> None:
    import py_compile

    write(tmp_path, {"app.py": "async def flow(ctx): ...\n"})
    builds: list[str] = []
    for text in ("async def flow(ctx): ...\n", "async def flow(ctx): return 1\n", "async def flow(ctx): ...\n"):
        (tmp_path / "app.py").write_text(text)
        os.utime(tmp_path / "app.py", (len(builds), len(builds)))
        py_compile.compile(str(tmp_path / "app.py"), cfile=str(tmp_path / "only" / "app.pyc"), doraise=True)
        builds.append(default_build_id([loaded(tmp_path / "only", module="app")]))
        sys.path.pop(0)
    assert builds[0] == builds[2] != builds[1]


def test_a_huge_project_is_not_read_to_its_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path)
    with caplog.at_level(logging.WARNING, "kagzi.worker"):
        first = build_of(tmp_path, modules_max=3)
    assert "set Worker(build_id=...)" in caplog.text
    (tmp_path / "app" / "words_of_app.py").write_text("hello = 'further away than that'\n")
    assert build_of(tmp_path, modules_max=3) == first
