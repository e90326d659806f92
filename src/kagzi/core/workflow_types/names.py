"""Names of workflows: equivalent spellings, and suggestions for unknown names."""

import difflib
from collections.abc import Collection, Iterable, Mapping

from .versions import best_first

_LONGEST = 64  # longest names that are compared: comparing long names is slow
_COMPARED = 500
_NAMED = 8


def canonical_type(name: str) -> str:
    """The canonical spelling of a workflow's name, to register, store and match it: `sync_customer` is `sync-customer`.

    It is applied wherever a name enters (the SDK, the command line, the server's calls), including registration, so
    that no two registered names differ only in spelling."""
    return name.replace("_", "-")


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar, if any is. Bounded: long names, and names after the first few hundred of
    similar length, are not compared."""
    if len(name) > _LONGEST:
        return None
    slack = max(2, len(name) // 3)
    near = [each for each in known if each != name and abs(len(each) - len(name)) <= slack and len(each) <= _LONGEST]
    matches = difflib.get_close_matches(name, near[:_COMPARED], n=1, cutoff=0.7)
    return matches[0] if matches else None


def unserved(name: str, version: str, served: Mapping[str, Collection[str]], similar: str | None) -> str:
    """One or two sentences about a name (and version, if given) that no worker serves. `served`: the versions that the
    connected workers serve, by name."""
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
