"""What answers without something that takes too long waits for it in tests: on a loaded machine everything takes long.

Tests that are about such a limit set it themselves. Processes that tests start have the limits of the product.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.timeouts import LOADED_MACHINE_S

_LIMITS = (
    ("kagzi.engine.checks.schemas", "_READ_TIMEOUT_S"),  # then inputs are not checked
    ("kagzi.engine.measurements.store_gauges", "WAIT_S"),  # then metrics lack what the store knows
    ("kagzi.engine.services.served", "_READ_TIMEOUT_S"),  # then nobody is warned that no worker serves a type
    ("kagzi.sdk.transport.websocket", "CONNECT_S"),  # then calls go by gRPC
    ("kagzi.sdk.transport.websocket", "_ASK_S"),
    ("kagzi.server.metrics.siblings", "ANSWER_S"),  # then metrics lack a process
)


@contextmanager
def raised_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for module, name in _LIMITS:
            patched.setattr(importlib.import_module(module), name, LOADED_MACHINE_S / 2)
        yield
