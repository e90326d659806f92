"""Rules of this repository that no linter knows. Style, types and import contracts are `make lint`."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import kagzi

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "kagzi"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 70

EXEMPTION = re.compile(
    r"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore)(?P<codes>:\s*[A-Z0-9, ]+\d|\[[\w, -]+\])?(?P<rest>.*)"
)


def own_modules() -> Iterator[tuple[str, str]]:
    """Path and text of every module under src/kagzi that people write."""
    for path in sorted(SOURCE.rglob("*.py")):
        if "v1" not in path.relative_to(SOURCE).parts:
            yield str(path.relative_to(ROOT)), path.read_text()


def test_the_version_is_the_same_in_package_and_metadata() -> None:
    assert kagzi.__version__ == PROJECT["version"]


def test_modules_and_functions_are_split_before_they_are_long() -> None:
    long: list[str] = []
    for path, text in own_modules():
        lines = text.count("\n")
        if lines > MAX_MODULE_LINES:
            long.append(f"{path}: {lines} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    long.append(f"{path}:{node.lineno} {node.name}: {length} lines")
    assert not long, "\n".join(long)


def test_no_module_is_a_drawer_for_everything() -> None:
    drawers = {"utils.py", "util.py", "helpers.py", "misc.py"}
    assert [path for path, _ in own_modules() if Path(path).name in drawers] == []


def test_every_exemption_names_its_rule_and_its_reason() -> None:
    bare: list[str] = []
    for path, text in own_modules():
        for number, line in enumerate(text.splitlines(), 1):
            match = EXEMPTION.search(line)
            if match and not (match["codes"] and re.search(r"\w{2,}", match["rest"])):
                bare.append(f"{path}:{number} {match[0]}")
    assert not bare, "\n".join(bare)


def test_declared_dependencies_can_load_the_generated_code() -> None:
    # Generated code refuses runtimes older than its generator: the floors in pyproject.toml must be at or above that.
    protobuf, grpcio = set[str](), set[str]()
    for path in (SOURCE / "v1").glob("*_pb2*.py"):
        text = path.read_text()
        protobuf.update(re.findall(r"^# Protobuf Python Version: (\S+)$", text, re.MULTILINE))
        grpcio.update(re.findall(r"^GRPC_GENERATED_VERSION = '(\S+)'$", text, re.MULTILINE))
    assert len(protobuf) == len(grpcio) == 1
    assert numbers(lowest_version("protobuf")) >= numbers(protobuf.pop())
    assert numbers(lowest_version("grpcio")) >= numbers(grpcio.pop())


def lowest_version(package: str) -> str:
    (bound,) = (match[1] for line in PROJECT["dependencies"] if (match := re.match(rf"{package}>=([\d.]+)", line)))
    return bound


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@pytest.mark.install
def test_a_plain_archive_installs_and_brings_every_file(tmp_path: Path) -> None:
    # No .git in it, as in `git archive`: a version taken from tags once made such an install fail.
    archive, target = tmp_path / "archive", tmp_path / "target"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", ".kagzi", "__pycache__", "dist", "build", "node_modules"
    )
    shutil.copytree(ROOT, archive, ignore=ignored)

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-build-isolation", f"--target={target}", archive], check=True)

    assert files_below(target / "kagzi") == files_below(archive / "src" / "kagzi")
    script = "import kagzi; print(kagzi.__version__, kagzi.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(target)}
    printed = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == [PROJECT["version"], str(target / "kagzi" / "__init__.py")]


def files_below(directory: Path) -> set[str]:
    """Everything a package brings: modules, stubs, SQL, the type marker. Not what Python compiled of it."""
    names = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return {str(name) for name in names if "__pycache__" not in name.parts}
