"""The named statements, ready to run. `part_x` is a text that others include as `{x}`."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from ..sql_files import expand, load_statements
from .parameters import Parameters, number_parameters

PACKAGE = __package__ or "kagzi.store.postgres"

_ORDERS = ("older", "newer")
_STATUSES = ("one_status", "each_status")
_MERGED_TYPES = ("each_version", "all_types")
_TYPES = ("one_type", "each_type", "any_type", *_MERGED_TYPES)


# Lists whose rows may be large, and the columns that make them so. See part_bounded_page.
_WIDE_RUN = ("error::text", "problem::text", "labels::text", "cancel_reason", "pause_reason", "status_text")
_WIDE_PAYLOADS = (
    "error::text",
    "input",
    "input_meta::text",
    "output",
    "output_meta::text",
    "details",
    "details_meta::text",
)
_LISTS: Mapping[str, tuple[str, ...]] = {
    "list_schedules": ("spec::text",),
    "list_fires": ("reason",),
    "list_workers": ("served::text", "labels::text", "workflow_types::text"),
    "list_worker_events": ("detail",),
    "list_versions": ("workflow_type", "version"),
    "list_types": ("name",),
    "list_namespaces": ("namespace", "retention::text"),
    "list_bulks": ("filter::text", "reason"),
    "list_keys": ("name",),
    "list_all_keys": ("name",),
    "list_audit": ("subject", "details::text"),
    "list_all_audit": ("subject", "details::text"),
}
_PAGES: Mapping[str, tuple[str, ...]] = {
    **{f"{name}_{direction}": wide for name, wide in _LISTS.items() for direction in ("next", "prev")},
    "list_steps": _WIDE_PAYLOADS,
    "list_forgotten_steps": _WIDE_PAYLOADS,
    "forgotten_attempts": ("error::text", "input", "input_meta::text"),
    "list_step_logs": ("lines",),
    "signal_waits": ("input", "input_meta::text"),
    "step_attempts": ("error::text", "input", "input_meta::text"),
    "endings_of": ("error::text", "output", "output_meta::text"),
    "export_steps": _WIDE_PAYLOADS,
    "export_attempts": ("error::text", "input", "input_meta::text"),
    "export_signals": ("payload", "payload_meta::text", "start_request"),
    "export_links": ("step_id",),
    "export_forgotten_steps": _WIDE_PAYLOADS,
}

# What part_new_runs includes: for many runs or one; with parents and signals, or without; or for the run that comes
# next, which nothing refuses.
_MANY = {
    "run_source": "{many_runs}",
    "payload_source": "{many_payloads}",
    "in_order": "\n{order_of_ids}",
}
_LONE = {"run_source": "{one_run}", "payload_source": "{payloads_of_one}", "in_order": ""}
_FAMILY = {
    "parent_columns": ", watched, parent_run_id, parent_step_id, on_close",
    "parent_values": ", p.run_id IS NOT NULL, p.parent_run_id, p.parent_step_id, p.on_close",
    "with_parents": "{parents}",
    "may_start": "(n.enabled OR p.run_id IS NOT NULL)",
    "with_signals": "{signals}",
    "signal_columns": ", unread_signals",
    "signal_values": ", (SELECT count(*) FROM sent AS s WHERE s.run_id = g.run_id)",
    "not_signalled_before": "\n{unless_signalled}",
}
_PLAIN = dict.fromkeys(_FAMILY, "") | {"may_start": "n.enabled"}
_NEXT = _PLAIN | {
    "may_start": "true",
    "with_signals": "{handed}",
    "signal_columns": ", unread_signals",
    "signal_values": ", (SELECT count(*) FROM handed)",
}


def _load() -> dict[str, str]:
    texts = load_statements(PACKAGE, uuid_type=True)
    parts = {name.removeprefix("part_"): _without_comments(text) for name, text in texts.items() if _is_part(name)}
    live = {"namespace": ":namespace", "since": "(SELECT until FROM known)", "until": ":until"}
    rolled = {"namespace": "n.namespace", "since": "span.since", "until": "span.until"}
    parts |= {
        "live_minutes": expand(parts["minutes"], {**parts, **live}),
        "rolled_minutes": expand(parts["minutes"], {**parts, **rolled}),
    }
    parts |= {
        "new_family_runs": expand(parts["new_runs"], {**parts, **_MANY, **_FAMILY}),
        "new_plain_runs": expand(parts["new_runs"], {**parts, **_MANY, **_PLAIN}),
        "new_lone_run": expand(parts["new_runs"], {**parts, **_LONE, **_PLAIN}),
        "new_next_run": expand(parts["new_runs"], {**parts, **_LONE, **_NEXT}),
    }
    statements = {name: expand(text, parts) for name, text in texts.items() if not _is_part(name)}
    for name, wide in _PAGES.items():
        statements[name] = _bounded(statements[name], wide, parts)
    return statements | _run_lists(parts)


def _bounded(page: str, wide: Sequence[str], parts: Mapping[str, str]) -> str:
    """The page, limited by bytes with one more parameter: `page_bytes`."""
    stored = [f"pg_column_size(p.{column[:-6]})" if column.endswith("::text") else _length(column) for column in wide]
    pieces = {
        "page": _without_comments(page),
        "stored_bytes": _sum(stored),
        "text_bytes": _sum(map(_length, wide)),
    }
    comments = "\n".join(line for line in page.splitlines() if line.startswith("--"))
    return f"{comments}\n{expand(parts['bounded_page'], pieces)}"


def _length(column: str) -> str:
    return f"octet_length(p.{column})"


def _sum(lengths: Iterable[str]) -> str:
    return " + ".join(f"coalesce({length}, 0)" for length in lengths)


def _is_part(name: str) -> bool:
    return name.startswith("part_")


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _run_lists(parts: Mapping[str, str]) -> dict[str, str]:
    """Pages of runs: in each order, from runs or from labels; for one value of a column, or merged for several."""
    lists: dict[str, str] = {}
    for labelled, order, status, workflow_type in product((False, True), _ORDERS, _STATUSES, _TYPES):
        if labelled and workflow_type in _MERGED_TYPES:
            continue  # labels determine the order
        name = list_name(labelled=labelled, order=order, status=status, workflow_type=workflow_type)
        page = _page_of_runs(parts, labelled=labelled, order=order, status=status, workflow_type=workflow_type)
        lists[name] = _bounded(f"-- See part_page_of_runs.\n{page}", _WIDE_RUN, parts)
    for order, status in product(_ORDERS, _STATUSES):
        page = _page_of_runs(parts, ended=True, order=order, status=status, workflow_type="any_type")
        lists[ended_list_name(order=order, status=status)] = _bounded(
            f"-- See part_ended_runs.\n{page}", _WIDE_RUN, parts
        )
    every = {**parts, "with_status": parts["any_status"], "with_type": parts["any_type"]}
    page = expand(parts["searched_runs"], every)
    lists["search_runs"] = _bounded(f"-- See part_searched_ids.\n{page}", _WIDE_RUN, parts)
    lists["count_searched_runs"] = "-- See part_searched_ids.\n" + expand(
        parts["counted_runs"], {**every, "source": f"({parts['searched_ids']}) AS r"}
    )
    for name, source, with_type in (
        ("count_runs", "plain_runs", "any_type"),
        ("count_runs_of_version", "plain_runs", "of_all_types"),
        ("count_labelled_runs", "labelled_runs", "any_type"),
    ):
        pieces = {
            **parts,
            "source": parts[source],
            "with_status": parts["any_status"],
            "with_type": parts[with_type],
            "beyond": "true",
        }
        lists[name] = "-- See part_counted_runs.\n" + expand(parts["counted_runs"], pieces)
    return lists


def _page_of_runs(
    parts: Mapping[str, str],
    *,
    labelled: bool = False,
    ended: bool = False,
    order: str,
    status: str,
    workflow_type: str,
) -> str:
    pieces = {
        **parts,
        "source": parts["labelled_runs" if labelled else "ended_runs" if ended else "plain_runs"],
        "time": "finished_at" if ended else "created_at",
        "with_status": parts[status],
        "with_type": parts["each_type" if workflow_type == "all_types" else workflow_type],
        "beyond": parts[f"{order}_than_cursor"],
        "order": parts[f"{order}_order"],
        "at": "l" if labelled else "r",
        "page": parts["page_of_runs"],
    }
    over = [part for part in (status, workflow_type) if part.startswith("each_") or part in _MERGED_TYPES]
    if not over:
        return expand(parts["page_of_runs"], pieces)
    pieces |= {
        "over": ", ".join(parts[f"over_{part}"] for part in over),
        "merged_order": parts[f"{order}_merged_order"],
    }
    if workflow_type == "each_version":
        pieces["page_without_version"] = expand(parts["page_of_runs"], {**pieces, "with_type": parts["no_version"]})
        return expand(parts["merged_versions"], pieces)
    if status == "each_status" and not ended:
        pieces["page_of_sleeping"] = expand(parts["page_of_runs"], {**pieces, "with_status": parts["sleeping"]})
        return expand(parts["merged_statuses"], {**pieces, "with_status": parts["each_but_sleeping"]})
    return expand(parts["merged_pages"], pieces)


def list_name(*, labelled: bool, order: str, status: str, workflow_type: str) -> str:
    return f"list_{order}_{'labelled_' if labelled else ''}runs_of_{status}_and_{workflow_type}"


def ended_list_name(*, order: str, status: str) -> str:
    return f"list_{order}_ended_runs_of_{status}"


_NUMBERED = {name: number_parameters(text) for name, text in _load().items()}
STATEMENTS: Mapping[str, str] = {name: text for name, (text, _) in _NUMBERED.items()}
PARAMETERS: Mapping[str, Parameters] = {name: parameters for name, (_, parameters) in _NUMBERED.items()}
