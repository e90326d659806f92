"""Names of workflows: which spellings are one name, and which known name was probably meant."""

import difflib
from collections.abc import Collection, Iterable, Mapping

from .versions import best_first

_LONGEST = 64  # of names that are compared: comparing long ones takes long
_COMPARED = 500
_NAMED = 8


def canonical_type(name: str) -> str:
    """The one spelling under which a workflow is registered, stored and matched: `sync_customer` is `sync-customer`.

    Every edge that takes a name (the SDK, the command line, the server's calls) applies it, registration included, so
    that no two registered names differ in this alone."""
    return name.replace("_", "-")


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like this one, if any does. Bounded: long names, and those beyond the first few
    hundred of about the same length, are not compared."""
    if len(name) > _LONGEST:
        return None
    slack = max(2, len(name) // 3)
    near = [each for each in known if each != name and abs(len(each) - len(name)) <= slack and len(each) <= _LONGEST]
    matches = difflib.get_close_matches(name, near[:_COMPARED], n=1, cutoff=0.7)
    return matches[0] if matches else None


def unserved(name: str, version: str, served: Mapping[str, Collection[str]], similar: str | None) -> str:
    """A sentence or two about a name, at this version if one is given, that no worker serves. `served`: the versions of
    what the workers that are there do serve, by name."""
    if version and (versions := served.get(name)):
        return (
            f"No worker serves version {version} of {name!r}: those connected serve {', '.join(best_first(versions))}."
        )
    if similar:
        return f"No worker serves {name!r}. Did you mean {similar!r}?"
    if not served:
        return f"No worker serves {name!r}: none is connected."
    more = f" and {len(served) - _NAMED} more" if len(served) > _NAMED else ""
    return f"No worker serves {name!r}. Those connected serve {', '.join(sorted(served)[:_NAMED])}{more}."
