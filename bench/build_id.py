"""Measures what the default build id costs when a worker starts: python bench/build_id.py [MODULES]"""

import importlib
import sys
import tempfile
import time
from pathlib import Path

from kagzi.sdk.worker.build_id import default_build_id

FUNCTIONS = "\n".join(
    f"def f{n}(x):\n    return x + {n}  # a line of ordinary length, as code has them" for n in range(60)
)


def main(modules: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(modules):
            following = f"import m{number + 1}\n" if number + 1 < modules else ""
            text = f"import json\n{following}from dataclasses import dataclass\n{FUNCTIONS}\nasync def flow(ctx): ...\n"
            (Path(folder) / f"m{number}.py").write_text(text)
        sys.path.insert(0, folder)
        for number in reversed(range(modules)):
            importlib.import_module(f"m{number}")
        size_kib = sum(path.stat().st_size for path in Path(folder).glob("*.py")) // 1024
        for which in ("first", "next"):
            began = time.process_time()
            build = default_build_id([sys.modules["m0"].flow])
            print(f"{which}: {build}, {modules} modules, {size_kib} KiB, {(time.process_time() - began) * 1000:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
