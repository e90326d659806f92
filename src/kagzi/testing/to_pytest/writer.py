"""Writes a recorded run as a test file for pytest."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from ...core.ids import is_uuid
from ...core.records import DEFAULT_NAMESPACE
from ...core.schedules.scheduled_time import split_scheduled_time
from ...core.states import StepKind, StepStatus
from ...core.times import from_datetime, moment_text, to_datetime
from ...sdk.workflow.codec import ANY
from ...sdk.workflow.workflow import Workflow
from ..replay.history import History
from ..replay.records import RecordedStep
from .calls import Seen
from .errors import error_literal
from .homes import home_of
from .literals import is_exact, literal, plain_literal
from .names import Names
from .source import Bracket, Item, Node, assigned, call, fits, flat, lay_out, sequence, text

KIT = "kagzi.testing"
FOLDED = 1_500
"""In characters. A value that is longer on one line is written below the test, under its own name."""

_Keywords = list[tuple[str, Node]]


class WrittenTest(NamedTuple):
    """The source, and what was left out."""

    source: str
    test: str  # the name of the test


def write_test(history: History, workflow: Workflow[Any, Any], seen: Mapping[str, Seen], command: str) -> WrittenTest:
    """Write the file. `workflow` is the workflow of the run, which can be imported; `seen` are its calls in a replay by
    the current code; `command` is the command line."""
    return _Writer(history, workflow, seen).file(command)


class _Writer:
    def __init__(self, history: History, workflow: Workflow[Any, Any], seen: Mapping[str, Seen]) -> None:
        self._history = history
        self._workflow = workflow
        self._seen = seen
        self._test = _test_name(history)
        self._names = Names(taken=(self._test, "run", "replay", "expected"))
        self._folded: list[list[str]] = []

    def file(self, command: str) -> WrittenTest:
        names = self._names
        recorded = names.name(KIT, "RecordedRun")
        body = [*lay_out("run = ", self._run(recorded), depth=1)]
        for step, order in _orders(self._history.steps):
            body += [*self._comments(step), *lay_out("run.", self._call(step, order), depth=1)]
        body += ["", "    replay = run.replay()", *self._end()]
        folded = [line for constant in self._folded for line in ("", "", *constant)]
        test = ["", "", f"def {self._test}() -> None:", *body, *folded]
        lines = [*_docstring(self._history, command), "", *names.lines(), *test]
        return WrittenTest("\n".join(lines) + "\n", self._test)

    # --- the run ------------------------------------------------------------------------------------------------------

    def _run(self, recorded: str) -> Bracket:
        history, image = self._history, self._history.image
        module, name = home_of(self._workflow)
        arguments: list[Node] = [self._names.name(module, name)]
        if image.input is not None:
            arguments.append(self._value("input", self._typed(self._workflow.input_codec, history.input)))
        keywords: _Keywords = [
            ("workflow_id", text(history.workflow_id)),
            ("run_id", text(history.run_id)),
            ("created_at", text(moment_text(image.created_at))),
        ]
        return call(recorded, arguments, keywords + self._facts())

    def _facts(self) -> _Keywords:
        """The fields that most runs do not have."""
        history, image = self._history, self._history.image
        payload, scheduled_at = split_scheduled_time(history.payload(image.context, "context"))
        context = ANY.decode(payload.data, what="context") if payload is not None and payload.data else None
        cancelled_at = None if image.cancel_requested_at is None else to_datetime(image.cancel_requested_at)
        facts: dict[str, Node | None] = {
            "version": text(history.version) if history.version != self._workflow.version else None,
            "namespace": text(history.namespace) if history.namespace != DEFAULT_NAMESPACE else None,
            "attempt": repr(history.attempt) if history.attempt > 1 else None,
            "labels": plain_literal(dict(history.labels)) if history.labels else None,
            "context": plain_literal(context) if context else None,
            "scheduled_at": None if scheduled_at is None else text(moment_text(scheduled_at)),
            "deadline_at": None if image.deadline_at is None else text(moment_text(image.deadline_at)),
            "parent_run_id": None if image.parent_run_id is None else text(image.parent_run_id),
            "cancelled_at": None if cancelled_at is None else text(self._since(cancelled_at)),
            "cancel_reason": text(image.cancel_reason) if image.cancel_reason else None,
        }
        return [(name, node) for name, node in facts.items() if node is not None]

    # --- its calls ----------------------------------------------------------------------------------------------------

    def _comments(self, step: RecordedStep) -> Iterator[str]:
        for number, failure in enumerate(step.failures, 1):
            yield f"    # attempt {number}: {_one_line(failure.text)}"

    def _call(self, step: RecordedStep, order: tuple[int, int] | None) -> Bracket:
        arguments: list[Node] = [text(step.id)]
        keywords: _Keywords = []
        if step.status is StepStatus.ABANDONED:
            kind = f"{self._names.name('kagzi', 'StepKind')}.{step.kind.name}"
            return call("abandoned", [kind, *arguments], [*self._when(step, order)])
        match step.kind:
            case StepKind.FUNCTION:
                keywords += self._arguments(step)
                keywords += self._result(step, "returns")
                if step.attempt > 1:
                    keywords.append(("attempts", repr(step.attempt)))
            case StepKind.SIGNAL:
                if step.status is StepStatus.COMPLETED:
                    arguments.append(self._value(step.id, self._decoded(step)))
                else:
                    keywords += self._result(step, "")
            case StepKind.CHILD:
                keywords += self._result(step, "returns")
                keywords.append(("run_id", text(step.child_run_id)))
            case StepKind.RACE:
                arguments.append(text(str(step.value)))
            case _:
                pass
        if step.wake_at is not None:
            keywords.append(("until", text(self._since(step.wake_at))))
        return call(_VERBS[step.kind], arguments, [*keywords, *self._when(step, order)])

    def _arguments(self, step: RecordedStep) -> _Keywords:
        """The arguments of the call, if they can be written as source."""
        seen = self._seen.get(step.id)
        if seen is None or seen.args is None or not _has_json_form((seen.args, seen.kwargs)):
            return []
        keywords: _Keywords = [("args", sequence("[", [self._value(step.id, each) for each in seen.args], "]"))]
        if seen.kwargs:
            pairs = [(text(name), self._value(f"{step.id} {name}", each)) for name, each in seen.kwargs.items()]
            keywords.append(("kwargs", Bracket("{", tuple(Item(f"{name}: ", each) for name, each in pairs), "}")))
        return keywords

    def _result(self, step: RecordedStep, returns: str) -> _Keywords:
        if step.error is not None and step.status is StepStatus.FAILED:
            error, exhausted = error_literal(step.error, self._names)
            return [("raises", error), *([("exhausted", "True")] if exhausted else [])]
        if step.status is not StepStatus.COMPLETED:
            return [("begun", "True")]
        value = self._decoded(step)
        return [] if value is None else [(returns, self._value(step.id, value))]

    def _when(self, step: RecordedStep, order: tuple[int, int] | None) -> _Keywords:
        keywords: _Keywords = []
        at = step.finished_at or step.started_at
        if at is not None:
            keywords.append(("at", text(self._since(at))))
        if order is not None:
            keywords.append(("order", sequence("(", map(repr, order), ")")))
        return keywords

    # --- its end ------------------------------------------------------------------------------------------------------

    def _end(self) -> Iterator[str]:
        history = self._history
        if history.continued_as is not None:
            yield '    assert replay.outcome == "continued"'
        elif not history.status.ended:
            yield '    assert replay.outcome == "open"'
        elif history.error is not None:
            yield f"    assert replay.outcome == {text(history.status.value)}"
            yield "    assert replay.error is not None"
            yield from self._equals("replay.error.text", text(history.error.text))
        else:
            yield '    assert replay.outcome == "completed"'
            yield from self._output(self._typed(self._workflow.output_codec, history.output))

    def _output(self, output: Any) -> Iterator[str]:
        if output is None:
            yield "    assert replay.output is None"
            return
        node = self._value("output", output)
        exact = is_exact(output, self._names)
        value = "replay.output" if exact else f"{self._names.name(KIT, 'plain')}(replay.output)"
        yield from self._equals(value, node)

    def _equals(self, value: str, node: Node) -> Iterator[str]:
        if node in ("True", "False"):
            yield f"    assert {value} is {node}"
            return
        lines = lay_out(f"assert {value} == ", node, depth=1)
        if len(lines) == 1 and fits(lines[0]):
            yield lines[0]
        else:
            yield from assigned("expected", node, depth=1)
            yield f"    assert {value} == expected"

    # --- values -------------------------------------------------------------------------------------------------------

    def _decoded(self, step: RecordedStep) -> Any:
        """The result as the code gets it; as JSON if the code does not reach the call."""
        seen = self._seen.get(step.id)
        return self._typed(seen.codec, step.value) if seen is not None else step.value

    def _typed(self, codec: Any, value: Any) -> Any:
        try:
            return codec.decode(msgspec.json.encode(value), what="value")
        except Exception:  # noqa: BLE001  a type that no longer matches, or user code in a model
            return value

    def _value(self, what: str, value: Any) -> Node:
        node = literal(value, self._names)
        if len(flat(node)) <= FOLDED:
            return node
        name = self._constant(what)
        self._folded.append(assigned(name, node))
        return name

    def _constant(self, what: str) -> str:
        words = re.sub(r"\W+", "_", what).strip("_").upper() or "VALUE"
        return self._names.own(words if words.isidentifier() else f"VALUE_{words}")

    def _since(self, moment: datetime) -> str:
        """The time since the start; a point in time for steps of a fork that are older than its start."""
        after = moment - self._history.created_at
        return seconds_text(after) if after >= timedelta(0) else moment_text(from_datetime(moment))


_VERBS = {
    StepKind.FUNCTION: "step",
    StepKind.SLEEP: "sleep",
    StepKind.SIGNAL: "signal",
    StepKind.CHILD: "child",
    StepKind.RACE: "race",
    StepKind.PATCH: "changed",
}


def _orders(steps: Sequence[RecordedStep]) -> Iterator[tuple[RecordedStep, tuple[int, int] | None]]:
    """The calls, each with its begin and end if others overlap it."""
    last = 0
    for place, step in enumerate(steps):
        following = steps[place + 1].begun_seq if place + 1 < len(steps) else None
        overlaps = step.begun_seq <= last or (following is not None and following <= step.seq)
        last = max(last, step.begun_seq, step.seq)
        yield step, (step.begun_seq, step.seq) if overlaps else None


def seconds_text(span: timedelta) -> str:
    """`0.214s`, `1m 3.5s`, `2d 1h`: exact."""
    microseconds = span // timedelta(microseconds=1)
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if count]
    if seconds or fraction or not parts:
        parts.append(f"{seconds}.{fraction:06}".rstrip("0").rstrip(".") + "s")
    return " ".join(parts)


def _has_json_form(value: Any) -> bool:
    try:
        ANY.encode(value, what="arguments")
    except Exception:  # noqa: BLE001  a user's model may raise anything
        return False
    return True


def _test_name(history: History) -> str:
    own = history.workflow_id
    slug = history.workflow_type + "_" + history.run_id[-8:] if is_uuid(own) or own == history.run_id else own
    words = re.sub(r"[^0-9a-zA-Z]+", "_", slug).strip("_").lower()
    return f"test_{words[:60] or 'run'}"


def _one_line(words: str) -> str:
    return " ".join(words.split())[:100]


def _docstring(history: History, command: str) -> Iterator[str]:
    yield f'"""A recorded run of {history.workflow_type}, which {_clean(_fate(history))}.'
    yield ""
    yield f"Written by: {_clean(command)}"
    yield ""
    yield "The test replays the run: the code of the workflow runs, and its calls get what is"
    yield "recorded below; no step is executed. It fails if the workflow makes other calls, makes"
    yield "them with other arguments, or ends differently. Edit it as you like."
    yield ""
    yield "It contains recorded values in plain text: input, results, errors and signals."
    yield '"""'


def _fate(history: History) -> str:
    if history.continued_as is not None:
        return "continued as a new run"
    if history.status.ended:
        return {"completed": "completed", "failed": "failed", "cancelled": "was cancelled"}[history.status.value]
    return f"was {history.status.value}"


def _clean(words: str) -> str:
    return words.replace("\\", "/").replace('"""', "'''")
