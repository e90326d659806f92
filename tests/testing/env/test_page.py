"""The tests of the page about testing pass."""

from pathlib import Path

from tests.docs.snippets import write_files

from .test_plugin import run_pytest

PAGE = "docs/how-to/testing.md"


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    write_files(PAGE, tmp_path)
    (tmp_path / "conftest.py").write_text((Path(__file__).parents[3] / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode=auto\nasyncio_default_fixture_loop_scope=function\n")
    done = run_pytest(tmp_path)
    assert "7 passed" in done.stdout, done.stdout + done.stderr
