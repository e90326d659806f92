"""What a statement says about rows of runs: which columns it holds equal, and which runs it brings together. See
joined_runs.py."""

import itertools
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

OTHER_RUN = (
    "child_run_id",
    "parent_run_id",
    "blocked_by",
    "forked_from",
    "continued_as",
    "new_run_id",
    "replay_run_id",
)
"""Columns that name another run than the one their row belongs to."""

PARAMETERS = "given"
RUN_COLUMNS = ("run_id", *OTHER_RUN)
COLUMNS = (*RUN_COLUMNS, "namespace")


class Table(NamedTuple):
    """Which of COLUMNS it has. `own`: the one that names the run to which a row belongs."""

    columns: tuple[str, ...]
    own: str = "run_id"


TABLES: Mapping[str, Table] = {
    "runs": Table(("run_id", "namespace", "parent_run_id", "blocked_by", "forked_from", "continued_as")),
    "run_labels": Table(("run_id", "namespace")),
    "steps": Table(("run_id", "child_run_id")),
    "step_attempts": Table(("run_id",)),
    "step_logs": Table(("run_id",)),
    "forgotten_steps": Table(("run_id", "child_run_id")),
    "signals": Table(("run_id",)),
    "child_links": Table(("namespace", "child_run_id", "parent_run_id"), own="parent_run_id"),
    "schedule_fires": Table(("run_id", "namespace")),
    "purging": Table(("run_id",)),
    "imports": Table(("run_id",)),
    # The run after which a version's waiting runs are replayed: a place in the order of lists, of which no row is read.
    "workflow_versions": Table(("replay_run_id", "namespace"), own="replay_run_id"),
}


class Node(NamedTuple):
    """A column of one mention of a table, or (`place` < 0) something that the caller gives."""

    place: int
    name: str


class Classes:
    """What is held equal."""

    def __init__(self) -> None:
        self._above: dict[Node, Node] = {}

    def find(self, node: Node) -> Node:
        while (above := self._above.get(node, node)) != node:
            node = above
        return node

    def merge(self, one: Node, other: Node) -> None:
        self._above[self.find(one)] = self.find(other)


Outputs = dict[str, Node | None]
Ctes = Mapping[str, exp.Expression]


@dataclass
class Source:
    """Something in a FROM clause. `place`: of a table with rows of runs, or of rows that the caller gives."""

    outputs: Outputs
    place: int | None = None
    inner: tuple[Node, ...] = ()


@dataclass
class Scope:
    outer: "Scope | None"
    ctes: Ctes
    sources: dict[str, Source] = field(default_factory=dict[str, Source])
    read: set[int] = field(default_factory=set[int])


class Reader:
    """One statement, with one branch of each of its unions."""

    def __init__(self, branch_of: Mapping[int, int]) -> None:
        self._branch_of = branch_of
        self._places = itertools.count(1)
        self._names: dict[int, str] = {}
        self.runs = Classes()
        self.namespaces = Classes()
        self.touched: set[Node] = set()
        self.meetings: set[tuple[Node, Node]] = set()
        self.own: dict[int, Node] = {}
        self.namespace_of: dict[int, Node] = {}
        self.namespace_parameters: set[Node] = set()
        self.tables: dict[int, str] = {}
        self.named_by_caller: set[Node] = set()
        self.context_of: dict[int, tuple[int, ...]] = {}
        self._context: tuple[int, ...] = ()
        self._contexts = itertools.count(1)
        self._parameter_rows: dict[int, Source] = {}
        self._reading: list[str] = []

    # --- queries ------------------------------------------------------------------------------------------------------

    def query(self, tree: exp.Expression, outer: Scope | None, ctes: Ctes) -> tuple[Outputs, tuple[Node, ...]]:
        """The columns it gives, and the runs its rows belong to."""
        tree = tree.unnest() if isinstance(tree, exp.Subquery | exp.Paren) else tree
        if outer is not None:
            outer.read.add(id(tree))
        ctes = self._with(tree, ctes)
        if isinstance(tree, exp.SetOperation):
            return self._branch(tree, outer, ctes)
        scope = Scope(outer, ctes)
        if isinstance(tree, exp.Select):
            self._select_sources(tree, scope)
            expressions = tree.expressions
        else:
            self._change_sources(tree, scope)
            returning = tree.args.get("returning")
            expressions = returning.expressions if returning is not None else []
        where = tree.args.get("where")
        if where is not None:
            self._hold(where.this, scope)
        outputs: Outputs = {}
        for name, node in itertools.chain.from_iterable(self._output(each, scope) for each in expressions):
            outputs[f"{name}${len(outputs)}" if name in outputs else name] = node
        self._nested(tree, scope)
        return outputs, self._meet(scope)

    def _with(self, tree: exp.Expression, ctes: Ctes) -> Ctes:
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is None:
            return ctes
        ctes = {**ctes, **{each.alias: each for each in with_.expressions}}
        for each in with_.expressions:
            if not isinstance(each.this, exp.Select | exp.SetOperation):
                self.query(each.this, None, ctes)  # it is done even if nobody reads it
        return ctes

    def _branch(self, tree: exp.SetOperation, outer: Scope | None, ctes: Ctes) -> tuple[Outputs, tuple[Node, ...]]:
        right = self._branch_of.get(id(tree), 0) == 1
        outputs, runs = self.query(tree.right if right else tree.left, outer, ctes)
        first = tree.left
        while isinstance(first := first.unnest(), exp.SetOperation):
            first = first.left
        names = [each.alias_or_name for each in first.selects]  # columns have the names of the first branch
        if right and "*" not in names:
            unique = [f"{name}${place}" if name in names[:place] else name for place, name in enumerate(names)]
            outputs = dict(zip(unique, outputs.values(), strict=True))
        return outputs, runs

    def _meet(self, scope: Scope) -> tuple[Node, ...]:
        here = self._runs_in(scope)
        self.meetings.update(itertools.combinations(sorted(here), 2))
        above = scope.outer
        while above is not None:
            self.meetings.update(itertools.product(here, self._runs_in(above)))
            above = above.outer
        return tuple(here)

    def _runs_in(self, scope: Scope) -> list[Node]:
        nodes: list[Node] = []
        for source in scope.sources.values():
            if source.place is None:
                nodes.extend(source.inner)
            else:
                own = self.own.get(source.place)
                nodes.extend([own] if own else [node for node in source.outputs.values() if node in self.touched])
        return nodes

    def _select_sources(self, tree: exp.Select, scope: Scope) -> None:
        from_ = tree.args.get("from_") or tree.args.get("from")
        if from_ is not None:
            self._add(from_.this, scope)
        self._read_join_conditions(tree, scope)

    def _read_join_conditions(self, tree: exp.Expression, scope: Scope) -> None:
        for join in tree.args.get("joins") or ():
            with self._maybe(join.side == "LEFT"):
                self._add(join.this, scope)
            if (on := join.args.get("on")) is not None:
                self._hold(on, scope)
            for column in join.args.get("using") or ():
                nodes = [
                    node for source in scope.sources.values() if (node := source.outputs.get(column.name)) is not None
                ]
                for one, other in itertools.pairwise(nodes):
                    self._equate(one, other)

    def _change_sources(self, tree: exp.Expression, scope: Scope) -> None:
        target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        if isinstance(target, exp.Table):  # whatever a CTE is called
            self._add(target, Scope(None, {}, scope.sources))
        if isinstance(tree, exp.Insert):
            self._insert(tree, scope)
        from_ = tree.args.get("from_") or tree.args.get("from")
        if from_ is not None:
            self._add(from_.this, scope)
            self._read_join_conditions(from_.this, scope)
            self._read_join_conditions(from_, scope)
        for using in tree.args.get("using") or ():
            self._add(using, scope)

    def _insert(self, tree: exp.Insert, scope: Scope) -> None:
        """What is copied belongs to the run that it is inserted for."""
        rows = tree.expression
        if not isinstance(rows, exp.Query) or isinstance(rows, exp.Values) or not isinstance(tree.this, exp.Schema):
            return
        outputs, inner = self.query(rows, None, scope.ctes)
        target = next(iter(scope.sources.values()))
        names = [each.name for each in tree.this.expressions]
        for name, output in zip(names, outputs.values(), strict=False):
            column = target.outputs.get(name)
            if column is not None and output is not None and name in ("run_id", "namespace"):
                self._equate(column, output)
        scope.sources["$rows"] = Source(outputs, None, inner)

    # --- sources ------------------------------------------------------------------------------------------------------

    def _add(self, tree: exp.Expression, scope: Scope) -> None:
        alias = tree.alias_or_name or f"${len(scope.sources)}"
        if isinstance(tree, exp.Lateral):
            inside = tree.this
            if isinstance(inside, exp.Subquery):
                outputs, inner = self.query(inside, scope, scope.ctes)
                scope.sources[alias] = Source(outputs, None, inner)
            return
        if isinstance(tree, exp.Subquery):
            outputs, inner = self.query(tree, scope.outer, scope.ctes)
            scope.sources[alias] = Source(outputs, None, inner)
            self._read_join_conditions(tree, scope)
            return
        if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            self._add_table(tree, alias, scope)
            self._read_join_conditions(tree, scope)
            return
        self._add_parameters(tree, alias, scope)
        self._read_join_conditions(tree, scope)

    def _add_table(self, tree: exp.Table, alias: str, scope: Scope) -> None:
        cte = scope.ctes.get(tree.name)
        if cte is not None and tree.name not in self._reading:
            self._reading.append(tree.name)
            outputs, inner = self.query(cte.this, None, scope.ctes)
            self._reading.pop()
            columns = [each.name for each in cte.args["alias"].columns]
            if columns:
                outputs = dict(zip(columns, outputs.values(), strict=False))
            scope.sources[alias] = Source(outputs, None, inner)
            return
        table = TABLES.get(tree.name)
        if table is None:
            scope.sources[alias] = Source({})
            return
        scope.sources[alias] = self._instance(table, tree.name)

    def _instance(self, table: Table, name: str) -> Source:
        place = next(self._places)
        self.tables[place] = name
        self.context_of[place] = () if name == PARAMETERS else self._context
        if table.own in table.columns:
            self.own[place] = Node(place, table.own)
            self.touched.add(self.own[place])
        if "namespace" in table.columns:
            self.namespace_of[place] = Node(place, "namespace")
        return Source({column: Node(place, column) for column in table.columns}, place)

    def _add_parameters(self, tree: exp.Expression, alias: str, scope: Scope) -> None:
        """Rows that the caller gives, as arrays or as JSON."""
        names = [each.name for each in tree.args["alias"].columns] if tree.args.get("alias") else []
        parameter = next((each for each in tree.find_all(exp.Parameter, exp.Placeholder)), None)
        columns = tuple(name for name in names if name in COLUMNS)
        if columns:  # whoever reads them again reads the same rows
            if id(tree) not in self._parameter_rows:
                self._parameter_rows[id(tree)] = self._instance(Table(columns), PARAMETERS)
            scope.sources[alias] = self._parameter_rows[id(tree)]
        else:
            scope.sources[alias] = Source({"value": None if parameter is None else self._param(parameter)})

    @contextmanager
    def _maybe(self, maybe: bool = True) -> Generator[None]:
        """What is read inside may be missing: what it is compared with says nothing of the rest."""
        before = self._context
        if maybe:
            self._context = (*before, next(self._contexts))
        yield
        self._context = before

    # --- what holds ---------------------------------------------------------------------------------------------------

    def _hold(self, tree: exp.Expression, scope: Scope) -> None:
        match tree:
            case exp.And():
                self._hold(tree.left, scope)
                self._hold(tree.right, scope)
            case exp.Paren():
                self._hold(tree.this, scope)
            case exp.EQ() | exp.NullSafeEQ() | exp.Is():
                self._hold_equal(tree.this, tree.expression, scope)
            case exp.Not(this=exp.In()):  # the same run is looked for, and must not be there
                with self._maybe():
                    self._hold(tree.this, scope)
            case exp.Exists():
                self.query(tree.this, scope, scope.ctes)
            case exp.In() if (query := tree.args.get("query")) is not None:
                columns = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [tree.this]
                outputs = self.query(query, scope, scope.ctes)[0].values()
                for column, other in zip(columns, outputs, strict=False):
                    self._equate_any(self._node(column, scope), other, whole_row=len(columns) > 1)
            case _:  # it may hold, or not: what names another run is noticed, and nothing is held equal
                for each in tree.find_all(exp.EQ, exp.NEQ):
                    for one, other in ((each.left, each.right), (each.right, each.left)):
                        self._may_name(one, other, scope)

    def _may_name(self, column: exp.Expression, other: exp.Expression, scope: Scope) -> None:
        while isinstance(column, exp.Cast | exp.Paren):
            column = column.this
        if not isinstance(column, exp.Column) or column.name not in OTHER_RUN:
            return
        node = self._column(column, scope)
        if node is not None and node.place in self.own:
            self.touched.add(node)
            self.meetings.add((node, self.own[node.place]))
            if isinstance(other, exp.Parameter | exp.Placeholder):
                self.named_by_caller.add(node)

    def _hold_equal(self, left: exp.Expression, right: exp.Expression, scope: Scope) -> None:
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            for one, other in zip(left.expressions, right.expressions, strict=True):
                self._hold_equal(one, other, scope)
            return
        if isinstance(right, exp.Any):
            one = self._node(left, scope)
            inside = right.this
            while isinstance(inside, exp.Paren):
                inside = inside.this
            if isinstance(inside, exp.Array):
                other = next(iter(self.query(inside.expressions[0], scope, scope.ctes)[0].values()), None)
            else:
                other = self._node(inside, scope)
            self._equate_any(one, other)
            return
        one, other = self._node(left, scope), self._node(right, scope)
        if one is not None and other is not None:
            self._equate(one, other)

    def _equate_any(self, one: Node | None, other: Node | None, *, whole_row: bool = False) -> None:
        """One of several. That does not hold two namespaces equal, unless the run is in the same row."""
        if one is not None and other is not None and (whole_row or "namespace" not in (one.name, other.name)):
            self._equate(one, other)

    def _equate(self, one: Node, other: Node) -> None:
        columns = {node.name for node in (one, other) if node.place > 0}
        if not columns:
            return
        if columns == {"namespace"}:
            self.namespace_parameters.update(node for node in (one, other) if node.place < 0)
            self.namespaces.merge(one, other)
        elif "namespace" not in columns:
            for node in (one, other):
                self.touched.add(node)
                own = self.own.get(node.place)
                if own is not None and own != node:
                    self.meetings.add((node, own))
            self.runs.merge(one, other)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _output(self, tree: exp.Expression, scope: Scope) -> list[tuple[str, Node | None]]:
        if isinstance(tree, exp.Star):
            return [pair for source in scope.sources.values() for pair in source.outputs.items()]
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            source = self._source(tree.table, scope)
            return [] if source is None else list(source.outputs.items())
        return [(tree.alias_or_name, self._node(tree.this if isinstance(tree, exp.Alias) else tree, scope))]

    def _node(self, tree: exp.Expression, scope: Scope) -> Node | None:
        match tree:
            case exp.Cast() | exp.Paren():
                return self._node(tree.this, scope)
            case exp.Parameter() | exp.Placeholder():
                return self._param(tree)
            case exp.Column():
                return self._column(tree, scope)
            case exp.Subquery():
                return next(iter(self.query(tree, scope, scope.ctes)[0].values()), None)
            case _:
                return None

    def _param(self, tree: exp.Expression) -> Node:
        name = tree.name or (tree.this.name if isinstance(tree.this, exp.Expression) else "")
        if not name or name == "?":
            name = self._names.setdefault(id(tree), f"?{len(self._names)}")
        return Node(-1, name)

    def _source(self, alias: str, scope: Scope) -> Source | None:
        above: Scope | None = scope
        while above is not None:
            if alias in above.sources:
                return above.sources[alias]
            above = above.outer
        return None

    def _column(self, tree: exp.Column, scope: Scope) -> Node | None:
        if tree.table:
            source = self._source(tree.table, scope)
            return None if source is None else source.outputs.get(tree.name)
        above: Scope | None = scope
        while above is not None:
            for source in above.sources.values():
                if tree.name in source.outputs:
                    return source.outputs[tree.name]
            above = above.outer
        return None

    def _nested(self, tree: exp.Expression, scope: Scope) -> None:
        """Queries within expressions that were not met on the way: EXISTS, sums, what is assigned."""
        skip = {id(tree.args.get(name)) for name in ("with_", "with", "from_", "from", "expression", "using")}
        stack = [
            each
            for name, value in tree.args.items()
            for each in (value if isinstance(value, list) else [value])
            if isinstance(each, exp.Expression) and id(value) not in skip and id(each) not in skip
        ]
        while stack:
            each = stack.pop()
            if isinstance(each, exp.Select | exp.SetOperation):
                if id(each) not in scope.read:
                    with self._maybe():
                        self.query(each, scope, scope.ctes)
            elif not isinstance(each, exp.Join):
                stack.extend(each.iter_expressions())
            elif (on := each.args.get("on")) is not None:
                stack.append(on)
