"""A test that fails once is run again and named; one that fails again has failed."""

from pathlib import Path

import pytest

from scripts import suite

FAILS = "def test_it() -> None:\n    raise AssertionError\n"
FAILS_ONCE = """
from pathlib import Path

def test_it() -> None:
    seen = Path(__file__).with_suffix(".seen")
    had_run = seen.exists()
    seen.touch()
    assert had_run
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "build" / "flaky-tests.txt"
    monkeypatch.setattr(suite, "REPORT", path)
    monkeypatch.setattr(suite, "TIMES", 1)
    monkeypatch.chdir(tmp_path)
    return path


def run(tmp_path: Path, *programs: str, options: tuple[str, ...] = ("-p", "no:xdist")) -> int:
    for number, program in enumerate(programs):
        (tmp_path / f"test_{number}.py").write_text(program)
    return suite.main([*options, "--rootdir", str(tmp_path), str(tmp_path)])


def test_a_test_that_fails_once_is_named(tmp_path: Path, report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, FAILS_ONCE, "def test_it() -> None: ...") == 0
    assert report.read_text() == "test_0.py::test_it\n"
    assert "FLAKY" in capsys.readouterr().out


def test_a_test_of_a_group_is_found_again(tmp_path: Path, report: Path) -> None:
    grouped = FAILS_ONCE.replace("def test_it", '@pytest.mark.xdist_group("port-50051")\ndef test_it')
    assert run(tmp_path, f"import pytest\n{grouped}", options=("--numprocesses", "1", "--dist", "loadgroup")) == 0
    assert report.read_text() == "test_0.py::test_it\n"


def test_a_test_that_fails_again_has_failed(tmp_path: Path, report: Path) -> None:
    assert run(tmp_path, FAILS_ONCE, FAILS) == 1
    assert not report.exists()


def test_many_failures_are_not_chance(tmp_path: Path, report: Path) -> None:
    assert run(tmp_path, *[FAILS_ONCE] * (suite.MOST + 1)) == 1
    assert not report.exists()


def test_a_file_that_cannot_be_read_is_not_run_again(tmp_path: Path, report: Path) -> None:
    assert run(tmp_path, "import no_such_module") == 2
    assert not report.exists()


RARE = """
from hypothesis import given, settings, strategies as st

@given(number=st.integers(0, 2**63))
@settings(max_examples=5, phases=["generate"], database=None)
def test_it(number: int) -> None:
    with open(%r, "a") as examples:
        print(number, file=examples)
    assert False
"""


def test_a_property_that_failed_is_repeated_with_the_same_examples(
    tmp_path: Path, report: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    examples = tmp_path / "examples"
    assert run(tmp_path, RARE % str(examples)) == 1
    first, again = examples.read_text().split("\n")[:2]
    assert first == again
    output = capfd.readouterr().out
    assert "again, 1 times, with --hypothesis-seed=" in output


FAILING = """
from hypothesis import Phase, given, settings, strategies as st

def test_it() -> None:
    @given(program=st.just([("step", "a")]), seed=st.just(7))
    @settings(phases=[Phase.generate])
    def property_(program: object, seed: int) -> None:
        raise AssertionError

    property_()
"""


def test_a_failed_property_prints_its_example_and_how_to_repeat_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    (tmp_path / "conftest.py").write_text("import schemathesis\nfrom tests.conftest import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    assert suite.pytest(["--numprocesses", "0", "--quiet", "--rootdir", str(tmp_path), str(tmp_path)]) == 1
    output = capfd.readouterr().out
    assert "program=[('step', 'a')]," in output
    assert "seed=7," in output
    assert "--hypothesis-seed=" in output
    assert not (tmp_path / ".hypothesis").exists()
