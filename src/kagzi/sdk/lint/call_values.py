"""Calls in workflow code: checks them, finds what they return, and follows them into functions."""

import ast
from collections.abc import Callable, Mapping, Sequence

from . import calls, names, rules
from .reading import Reading
from .values import DERIVED, SET, STEP_CALL, UNKNOWN, Class, Function, Pending, Value

_DURABLE = frozenset({"sleep", "sleep_until", "wait_for", "child", "start_child", "parallel", "map", "race"})
_NAMED = frozenset({"step", "sleep", "sleep_until", "map"})
_CALLS_BACK = frozenset({"builtins.sorted", "builtins.min", "builtins.max", "builtins.map", "builtins.filter"})
_WANTS_VALUE = frozenset(f"builtins.{name}" for name in ("print", "str", "repr", "len", "int", "float", "bool", "sum"))
_KEEPS_ORDER = frozenset(
    f"builtins.{name}"
    for name in "list tuple enumerate reversed iter zip map filter next dict dict.fromkeys str repr".split()  # noqa: SIM905  easier to read
)
_SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})
_VIEWS = frozenset({"keys", "values", "items", "join", "format"})
_ELEMENTS = frozenset({"get", "values", "items", "pop", "copy"})
_MUTATES = frozenset(
    "append appendleft extend insert add update setdefault pop popleft popitem clear remove discard sort".split()  # noqa: SIM905  easier to read
)


class CallValues:
    """The calls of one function. `value` reads an expression."""

    def __init__(self, reading: Reading, value: Callable[[ast.expr], Value]) -> None:
        self._reading = reading
        self._value = value

    def call(self, node: ast.Call) -> Value:
        function = node.func
        owner = UNKNOWN
        if isinstance(function, ast.Attribute):
            owner = self._value(function.value)
            callee = names.attribute(owner, function.attr)
        else:
            callee = self._value(function)
        if callee.path == f"{STEP_CALL}.run":
            return self._run_step(node)
        if names.is_context(owner) and isinstance(function, ast.Attribute):
            return self._context_call(node, function.attr)
        return self._plain_call(node, self._reading.resolved(callee), owner)

    # --- calls of the context -----------------------------------------------------------------------------------------

    def _run_step(self, node: ast.Call) -> Value:
        """`ctx.step("name").run(function, ...)`: the function is the body of a step, not workflow code."""
        reading = self._reading
        for argument in node.args[1:]:
            reading.not_awaited(self._value(argument).pending)
        for keyword in node.keywords:
            reading.not_awaited(self._value(keyword.value).pending)
        self._is_step(node.args[:1])
        step = _step_call(node.func)
        reading.makes_durable_call(keyed=step is not None and _keyword(step, "key") is not None)
        return Value(pending=Pending(_words(node, step), node))

    def _context_call(self, node: ast.Call, method: str) -> Value:
        reading = self._reading
        steps = node.args[2:3] or [each.value for each in node.keywords if each.arg == "fn"] if method == "map" else []
        arguments = [UNKNOWN if each in steps else self._value(each) for each in node.args]
        for keyword in node.keywords:
            if keyword.value not in steps:
                value = self._value(keyword.value)
                if keyword.arg == "key":
                    self._follow_callback(value, node)
        self._is_step(steps)
        keyed = _keyword(node, "key") is not None
        if method in _NAMED and arguments and arguments[0].unordered:
            reading.problem(
                rules.UNORDERED,
                node.args[0],
                "this name depends on the order of a set, which is another one in every process",
                "Use sorted(...)",
            )
        if method == "map" and len(arguments) > 1 and arguments[1].unordered and not keyed:
            reading.problem(
                rules.UNORDERED,
                node.args[1],
                "these items are in the order of a set, which is another one in every process: on replay steps get "
                "each other's results",
                "Use sorted(...), or name the steps by their items: key=lambda item: item",
            )
        if method == "step":
            return Value(STEP_CALL)
        if method not in _DURABLE:
            return Value(f"kagzi.Context().{method}()")
        reading.makes_durable_call(keyed=keyed)
        path = "kagzi.ChildHandle()" if method == "start_child" else ""
        return Value(path, pending=Pending(f"ctx.{method}({_first_argument(node)})", node))

    def _is_step(self, functions: Sequence[ast.expr]) -> None:
        """Record the function, under any name; the expressions around it are workflow code."""
        for node in functions:
            if isinstance(node, (ast.Lambda, ast.Call)):
                if isinstance(node, ast.Call):
                    self._is_step(node.args[:1] if _is_partial(node, self._reading) else [])
                    for argument in (*node.args[1:], *(each.value for each in node.keywords)):
                        self._value(argument)
                continue
            value = self._value(node)
            for each in value.choices or (value,):
                function = self._reading.resolved(each).function
                if function is not None:
                    self._reading.follower.add_step(function, self._reading.chain)

    # --- other calls --------------------------------------------------------------------------------------------------

    def _plain_call(self, node: ast.Call, callee: Value, owner: Value) -> Value:
        reading = self._reading
        arguments = [self._value(each) for each in node.args]
        keywords = {each.arg or "**": self._value(each.value) for each in node.keywords}
        path = callee.plain_path
        self._check_path(node, path)
        self._check_method(node, owner)
        self._check_arguments(node, path, arguments, keywords)
        if callee.choices:
            return self._follow_each(callee.choices, node, arguments, keywords)
        if callee.function is not None:
            return self._follow(callee.function, node, arguments, keywords)
        if callee.cls is not None:
            self._instantiate(callee.cls, node, arguments, keywords)
        if path == "kagzi.ChildHandle.result":
            reading.makes_durable_call()
            return Value(pending=Pending(f"{written(node.func)}()", node))
        chosen = reading.resolved(owner).choices if _gives_elements(node.func) else ()
        result = names.called(callee)
        return result._replace(unordered=self._order(node, path, owner, arguments), pending=None, choices=chosen)

    def _check_path(self, node: ast.Call, path: str) -> None:
        advice = calls.advice_for(path, node)
        if advice is not None:
            words = f"{written(node.func)}() in a workflow {advice.happens}"
            self._reading.problem(advice.rule, node, words, advice.instead)

    def _check_arguments(
        self, node: ast.Call, path: str, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> None:
        """Finds coroutines passed as values, and functions that are called back at once."""
        for argument in arguments:
            if path in _WANTS_VALUE:
                self._reading.not_awaited(argument.pending)
            if path in _CALLS_BACK:
                self._follow_callback(argument, node)
        if "key" in keywords:
            self._follow_callback(keywords["key"], node)

    def _instantiate(
        self, cls: Class, node: ast.Call, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> None:
        for name in ("__init__", "__post_init__"):
            method = cls.method(name)
            if method is not None:
                self._follow(method, node, arguments, keywords)

    def _check_method(self, node: ast.Call, owner: Value) -> None:
        """Finds methods that change a module variable, or take an arbitrary element of a set."""
        if not isinstance(node.func, ast.Attribute):
            return
        method = node.func.attr
        if method in _MUTATES and self.module_variable(node.func.value, containers_only=True):
            self.global_write(node, written(node.func.value))
        if method == "pop" and owner.unordered == SET and not node.args:
            self._reading.problem(
                rules.UNORDERED,
                node,
                f"{written(node.func)}() takes an element of a set, another one in every process",
                "Sort the elements first: sorted(...)",
            )
        if method == "sort" and isinstance(node.func.value, ast.Name) and owner.unordered:
            self._reading.env.names[node.func.value.id] = owner._replace(unordered="")

    def module_variable(self, node: ast.expr, *, containers_only: bool = False) -> bool:
        """Whether the changed object belongs to a module: a variable, or an attribute or element of one."""
        while isinstance(node, (ast.Subscript, ast.Attribute)):
            if isinstance(node, ast.Attribute):
                value = self._reading.resolved(names.resolve(node, self._reading.env))
                if value.origin == "variable":
                    return value.container or not containers_only
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        value = names.lookup(node.id, self._reading.env)
        if value.origin == "import":
            known = self._reading.resolved(value)
            if known.origin != "variable":
                return not containers_only
            value = known
        if containers_only:
            return value.origin == "variable" and value.container
        return value.origin in ("variable", "class")

    def global_write(self, node: ast.expr | ast.stmt, name: str) -> None:
        self._reading.problem(
            rules.GLOBAL_STATE,
            node,
            f"{name} belongs to the module and is changed in a workflow: other runs see it, every replay changes it "
            "again, and another process does not have it",
            "Keep it in a variable of the workflow, or write it in a step to where it belongs",
        )

    def _order(self, node: ast.Call, path: str, owner: Value, arguments: Sequence[Value]) -> str:
        unordered = any(each.unordered for each in arguments)
        if path in names.SETS:
            return "" if arguments and arguments[0].path == "builtins.range()" else SET
        if path in _KEEPS_ORDER or path.startswith("itertools."):
            return DERIVED if unordered else ""
        if not isinstance(node.func, ast.Attribute):
            return ""
        if node.func.attr in _SET_METHODS:
            return owner.unordered
        return DERIVED if node.func.attr in _VIEWS and (owner.unordered or unordered) else ""

    # --- functions that are called ------------------------------------------------------------------------------------

    def _follow_callback(self, value: Value, node: ast.Call) -> None:
        function = self._reading.resolved(value).function
        if function is not None:
            self._follow(function, node, (), {})

    def _follow_each(
        self, choices: Sequence[Value], node: ast.Call, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """One of them is called, but it is not known which."""
        results: list[Value] = []
        for each in choices:
            callee = self._reading.resolved(each)
            self._check_path(node, callee.plain_path)
            if callee.function is not None:
                results.append(self._follow(callee.function, node, arguments, keywords))
        if not results or any(each.pending is None for each in results):
            return UNKNOWN
        return results[0]

    def _follow(
        self, function: Function, node: ast.Call, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        reading = self._reading
        if names.is_step(function):
            reading.follower.add_step(function, reading.chain)
            reading.makes_durable_call()
            return Value(pending=Pending(f"{written(node.func)}({'...' if node.args or node.keywords else ''})", node))
        if names.is_workflow(function):
            return UNKNOWN
        chain = reading.chain.calling(function.name, reading.source, node, reading.statement)
        if isinstance(function.node, ast.Lambda):
            chain = reading.chain
        summary = reading.follower.read(function, chain, bind(function, arguments, keywords))
        if summary.durable:
            reading.makes_durable_call()
        pending = None
        if isinstance(function.node, ast.AsyncFunctionDef):
            if not function.node.decorator_list and not is_generator(function.node):
                pending = Pending(f"{written(node.func)}({'...' if node.args or node.keywords else ''})", node)
        elif summary.returns.pending is not None and not names.decorators(function):
            pending = Pending(summary.returns.pending.words, node)
        return summary.returns._replace(pending=pending, function=None, origin="", container=False)


def bind(function: Function, arguments: Sequence[Value], keywords: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments of a call by parameter name."""
    parameters = function.parameters
    bound: dict[str, Value] = {}
    if function.owner is not None and parameters and "builtins.staticmethod" not in names.decorators(function):
        bound[parameters[0].arg] = Value(cls=function.owner)
        parameters = parameters[1:]
    bound.update({parameter.arg: value for parameter, value in zip(parameters, arguments, strict=False)})
    allowed = {each.arg for each in (*parameters, *function.node.args.kwonlyargs)}
    bound.update({name: value for name, value in keywords.items() if name in allowed})
    return {name: value._replace(pending=None, origin="", container=False) for name, value in bound.items()}


def is_generator(node: ast.AsyncFunctionDef) -> bool:
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(part))
    return False


def _gives_elements(node: ast.expr) -> bool:
    """Whether this is a method of a list or dict that returns its elements."""
    return isinstance(node, ast.Attribute) and node.attr in _ELEMENTS


def _is_partial(node: ast.Call, reading: Reading) -> bool:
    return names.resolve(node.func, reading.env).path == "functools.partial"


def _step_call(node: ast.expr) -> ast.Call | None:
    """The ctx.step(...) in ctx.step(...).retry(...).run."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        inner = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Call) and isinstance(inner, ast.Attribute) and inner.attr == "step":
            return node
        node = inner
    return None


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in node.keywords if each.arg == name), None)


def _words(node: ast.Call, step: ast.Call | None) -> str:
    call = "ctx.step(...)" if step is None else f"{written(step.func)}({_first_argument(step)})"
    return f"{call}.run({'...' if node.args else ''})"


def _first_argument(node: ast.Call) -> str:
    if not node.args:
        return "..." if node.keywords else ""
    first = node.args[0]
    text = ast.unparse(first) if isinstance(first, (ast.Constant, ast.Name)) else "..."
    return text if len(node.args) == 1 and not node.keywords else f"{text}, ..." if text != "..." else text


def written(node: ast.expr) -> str:
    """As in the source; only the end if it is long."""
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"...{text[-37:]}"
