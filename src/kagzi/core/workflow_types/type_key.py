"""The key of a workflow type."""

from typing import NamedTuple


class TypeKey(NamedTuple):
    namespace: str
    workflow_type: str
