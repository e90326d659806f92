"""`kagzi lint`: targets, output and exit codes. The rules are in tests/sdk/lint."""

import json
from pathlib import Path

import pytest

from tests.sdk.lint.marked import HEAD, in_workflow
from tests.support.kagzi_inline import kagzi_inline as kagzi

WRONG = HEAD + in_workflow(
    "import time\nreturn stamp()", "import time\n\ndef stamp() -> float:\n    return time.time()\n"
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "linted_app"
    (package / ".hidden").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "right.py").write_text(HEAD + in_workflow("return ctx.now()"))
    (package / "wrong.py").write_text(WRONG)
    (package / ".hidden" / "other.py").write_text("not Python")
    return tmp_path


LINE = (
    "{}:5:12: clock: time.time() in a workflow returns another time on every replay. Use ctx.now(). "
    "(Workflow 'flow' calls stamp() at {}:10.)\n"
)


@pytest.mark.parametrize(
    "target",
    ["linted_app/wrong.py", "linted_app", "linted_app.wrong", "./linted_app/", "linted_app/right.py ./linted_app"],
)
def test_files_modules_and_directories(target: str, project: Path) -> None:
    done = kagzi("lint", "--no-import", *target.split())
    assert (done.returncode, done.stdout) == (1, LINE.format(*["linted_app/wrong.py"] * 2))
    assert done.stderr.startswith("1 finding in ")


def test_nothing_to_report(project: Path) -> None:
    done = kagzi("lint", "linted_app/right.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing found in 1 workflow in 1 file\n")


def test_as_json(project: Path) -> None:
    done = kagzi("lint", "linted_app", "--no-import", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "files": 3,
        "workflows": 2,
        "findings": [
            {
                "file": "linted_app/wrong.py",
                "line": 5,
                "column": 12,
                "rule": "clock",
                "workflow": "flow",
                "message": "time.time() in a workflow returns another time on every replay.",
                "instead": "Use ctx.now().",
                "called_from": [{"function": "stamp", "file": "linted_app/wrong.py", "line": 10}],
            }
        ],
        "not_imported": [],
    }


def test_types_are_checked_by_an_import_that_may_fail_and_print(project: Path) -> None:
    text = HEAD + "print('hello')\n@workflow\nasync def flow(ctx: Context) -> range: ...\n"
    (project / "linted_types.py").write_text(text)
    done = kagzi("lint", "linted_types.py", "--json")
    assert [each["rule"] for each in json.loads(done.stdout)["findings"]] == ["unserialisable"]
    (project / "linted_fails.py").write_text(text + "raise OSError('no such place')\n")
    done = kagzi("lint", "linted_fails.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert "warning: linted_fails.py was not imported, so its annotations were not checked: " in done.stderr
    assert "no such place" in done.stderr


@pytest.mark.parametrize("target", ["missing.py", "missing.module", "empty", "broken.py"])
def test_what_cannot_be_linted(target: str, project: Path) -> None:
    (project / "empty").mkdir()
    (project / "broken.py").write_text("def broken(:\n")
    done = kagzi("lint", target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert target in done.stderr
