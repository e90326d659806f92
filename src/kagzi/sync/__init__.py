"""Kagzi without await, for Flask, Django and scripts: the same client, which waits for each response.

    from kagzi.sync import Kagzi

    with Kagzi.connect() as client:
        print(client.run("hello", "Ada"))

Workflows, steps and workers are those of `kagzi`: only the client differs.
"""

from .client import Kagzi
from .operations import BulkOperation
from .run import Run

__all__ = ["BulkOperation", "Kagzi", "Run"]
