"""Builds the dashboard into the package when a wheel, an sdist or an editable install is made.

KAGZI_WEB says how much it matters: `require` (releases) fails without, `skip` leaves it alone, and `auto`, which is the
default, warns if it cannot be built: the server then has plain pages, which say what to run. Whatever has the bundle of
its sources already, as an sdist has, needs no Node.
"""

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MODES = ("auto", "require", "skip")


class DashboardHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]  its parameter is the builder's config
    def dependencies(self) -> list[str]:
        """What the build needs beyond hatchling: Node, where there is none."""
        web = _web(self.root)
        if _mode() == "skip" or web.is_current() or web.node_on_path():
            return []
        return [web.NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        mode, web = _mode(), _web(self.root)
        if mode == "skip":
            return
        try:
            web.build()
        except web.CannotBuild as problem:
            if mode == "require":
                raise SystemExit(f"KAGZI_WEB=require: {problem}") from None
            self.app.display_warning(f"Without the dashboard: {problem}")


def _mode() -> str:
    mode = os.environ.get("KAGZI_WEB") or "auto"
    if mode not in _MODES:
        raise SystemExit(f"KAGZI_WEB={mode} is not known. Write one of {', '.join(_MODES)}.")
    return mode


def _web(root: str) -> Any:
    """scripts/web.py, which is not a part of any package."""
    spec = importlib.util.spec_from_file_location("kagzi_web_build", Path(root) / "scripts" / "web.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
