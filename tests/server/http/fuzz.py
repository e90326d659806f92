"""Requests that schemathesis makes of the OpenAPI document, valid and not, sent to a real server. Ids of things that
are there go into some of the paths: otherwise every one of them would end at "not found"."""

from collections import Counter
from contextlib import suppress
from typing import Any

import hypothesis
import schemathesis
from hypothesis import strategies
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.server.http.world import World
from tests.support.timeouts import LOADED_MACHINE_S

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
NOT_MADE = {"POST /api/v1/runs/import"}  # lines of JSON, which it does not make


class Fuzzing:
    """`statuses`: how often each was answered."""

    def __init__(self, api: World, *, seed: int = 1) -> None:
        self._api = api
        self._seed = seed
        self._ids = self._known_ids()
        self.statuses: Counter[int] = Counter()

    def run(self, *, valid: int, invalid: int, brief: bool = False) -> None:
        """So many valid and invalid requests for each operation. `brief`: invalid ones only where there is a body.
        Raises what schemathesis finds."""
        schema = schemathesis.openapi.from_url(f"{self._api.url}/openapi.json")
        for result in schema.get_all_operations():
            operation: Any = result.ok()
            if operation.label in NOT_MADE:
                continue
            self._try(operation, GenerationMode.POSITIVE, valid)
            if operation.body or not brief:
                with suppress(hypothesis.errors.Unsatisfiable):  # there may be nothing about it that could be wrong
                    self._try(operation, GenerationMode.NEGATIVE, invalid)

    def _known_ids(self) -> dict[str, list[str]]:
        """Names of path segments and what is there of them."""
        api = self._api
        runs = [api.start("hello", input="world"), api.start("broken", input="x"), api.start("approval", input={})]
        for run in runs[:2]:
            api.ended(run)
        return {"run": [*runs, "workflow_id:x"], "workflow": ["hello"], "namespace": ["default"], "version": ["1"]}

    def _try(self, operation: Any, mode: GenerationMode, examples: int) -> None:
        @hypothesis.seed(self._seed)
        @hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode), chosen=strategies.integers(0, 1_000))
        def attempt(case: Any, chosen: int) -> None:
            if mode is GenerationMode.POSITIVE and chosen % 4:
                self._make_likely(case, chosen)
            if case.path.endswith("/events"):
                case.headers["Accept"] = "application/json"
            if case.path.endswith("/wait"):
                case.query = {**(case.query or {}), "timeout": "1ms"}
            response = case.call(base_url=self._api.url, timeout=LOADED_MACHINE_S)
            case.validate_response(response, checks=CHECKS)
            self.statuses[response.status_code] += 1

        attempt()

    def _make_likely(self, case: Any, chosen: int) -> None:
        for name, known in self._ids.items():
            if name in (case.path_parameters or {}):
                case.path_parameters[name] = known[chosen % len(known)]
        for name in ("namespace", "token", "label"):
            (case.query or {}).pop(name, None)
