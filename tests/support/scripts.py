"""Programs of scripts/ as modules: they belong to no package."""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@cache
def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"kagzi_scripts_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
