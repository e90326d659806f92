"""For an environment that was installed before the plugin came: its entry point is read when a package is installed."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.hasplugin("kagzi"):
        from kagzi.testing import pytest_plugin  # noqa: PLC0415  where it is not loaded already

        config.pluginmanager.register(pytest_plugin, "kagzi")
