"""Generates `src/kagzi/v1` from `proto/` and `web/src/api/types.ts` from the table of routes. With `--check`, fails if
the committed code differs.

protoc makes the stubs of messages (`_pb2.pyi`), mypy-protobuf those of services (`_pb2_grpc.pyi`). The path of a proto
file is its package, so the generated imports need no patching. Both generators are pinned in `pyproject.toml`.
"""

import argparse
import filecmp
import shutil
import sys
import tempfile
from pathlib import Path

import ts_types
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
PACKAGE = Path("kagzi/v1")
COMMITTED = ROOT / "src" / PACKAGE
TYPES = ROOT / "web" / "src" / "api" / "types.ts"
INIT = '"""Generated from `proto/kagzi/v1` by `make gen`; never edited."""\n'


def generate(target: Path) -> None:
    """Write the whole package below `target`, which must exist. Raises SystemExit with protoc's code if it fails."""
    plugin = Path(sys.executable).parent / "protoc-gen-mypy_grpc"
    protos = sorted(path.relative_to(PROTO).as_posix() for path in (PROTO / PACKAGE).glob("*.proto"))
    if not protos:
        sys.exit(f"no .proto file in {PROTO / PACKAGE}")
    code = protoc.main(
        [
            "protoc",
            f"-I{PROTO}",
            f"-I{Path(protoc.__file__).parent / '_proto'}",  # google/protobuf/*.proto
            f"--plugin=protoc-gen-mypy_grpc={plugin}",
            f"--python_out={target}",
            f"--grpc_python_out={target}",
            f"--pyi_out={target}",
            f"--mypy_grpc_out=quiet:{target}",
            *protos,
        ]
    )
    if code != 0:
        sys.exit(code)
    (target / PACKAGE / "__init__.py").write_text(INIT)


def files(directory: Path) -> set[str]:
    """The names to compare, without caches."""
    return {path.name for path in directory.glob("*.py*") if path.is_file()}


def drift(fresh: Path) -> list[str]:
    """One line for every file in which the committed package differs from `fresh`."""
    made, kept = files(fresh), files(COMMITTED)
    _, changed, unreadable = filecmp.cmpfiles(fresh, COMMITTED, made & kept, shallow=False)
    return sorted(
        [f"missing: {name}" for name in made - kept]
        + [f"stale:   {name}" for name in kept - made]
        + [f"differs: {name}" for name in changed + unreadable]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the committed code has drifted")
    check: bool = parser.parse_args().check

    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = Path(scratch) / PACKAGE
        differences = drift(fresh)
        if check:
            if differences:
                sys.exit("\n".join([f"{COMMITTED} is not what proto/ generates; run `make gen`:", *differences]))
            if not _is_current(TYPES, ts_types.text()):
                sys.exit(f"{TYPES} is not what the table of routes generates; run `make gen`")
            return
        if differences:  # an unchanged package keeps its mtimes, so reloaders and caches are not triggered
            shutil.rmtree(COMMITTED, ignore_errors=True)
            shutil.copytree(fresh, COMMITTED)
            print("\n".join(differences))
    types = ts_types.text()
    if not _is_current(TYPES, types):
        TYPES.parent.mkdir(parents=True, exist_ok=True)
        TYPES.write_text(types)
        print(f"differs: {TYPES.relative_to(ROOT)}")


def _is_current(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    main()
