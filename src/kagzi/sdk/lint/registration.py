"""Lints at registration: a worker warns of findings in its workflows.

It only warns: the code may be in a branch that never runs, or a name may refer to something else.
"""

import inspect
import warnings
from collections.abc import Iterable
from types import CodeType
from typing import Any

from ..garbage import none_collected
from ..workflow.signatures import unwrap
from ..workflow.workflow import Workflow
from . import annotations
from .flow import Linter
from .kagzi_warning import KagziWarning
from .report import Finding
from .sources import Sources
from .workflows import function_at

_KNOWN_MAX = 1_000
_known: dict[CodeType, tuple[Finding, ...]] = {}  # a worker copy with other options gets the same workflows again
_warned: dict[Any, Any] = {}  # the registry in which Python records issued warnings


def warn_about(workflows: Iterable[Workflow[Any, Any]]) -> None:
    """Issue a KagziWarning for every finding, at its line: once, however many workers register the workflow."""
    for finding in findings(workflows):
        warnings.warn_explicit(
            f"{finding.advice} [{finding.rule}]", KagziWarning, finding.file, finding.line, registry=_warned
        )


def findings(workflows: Iterable[Workflow[Any, Any]]) -> list[Finding]:
    """The findings in these workflows and in the functions that they call. Empty without source code."""
    all_findings: dict[Finding, None] = {}
    with none_collected():
        sources = Sources()
        for workflow in workflows:
            target = inspect.unwrap(unwrap(workflow.fn))
            code = getattr(target, "__code__", None)
            if not isinstance(code, CodeType):
                continue
            if code not in _known:
                if len(_known) >= _KNOWN_MAX:
                    _known.clear()
                _known[code] = tuple(_read(workflow, target, code, sources))
            all_findings.update(dict.fromkeys(_known[code]))
        sources.forget()
    return list(all_findings)


def _read(workflow: Workflow[Any, Any], target: Any, code: CodeType, sources: Sources) -> list[Finding]:
    namespace: dict[str, object] = getattr(target, "__globals__", {})
    module, package = (str(namespace.get(name) or "") for name in ("__name__", "__package__"))
    file = inspect.getsourcefile(code) or code.co_filename
    source = sources.of_loaded(file, module, package, namespace)
    function = None if source is None else function_at(source, code.co_name, code.co_firstlineno)
    if function is None:
        return []
    linter = Linter(sources)
    linter.workflow(function, workflow.name)
    annotations.check_workflow(function, workflow, linter.report)
    for step in linter.steps.values():
        annotations.check_step(step, linter.report)
    return linter.report.findings()
