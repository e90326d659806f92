"""Logs of long-running commands: on stderr, one line each."""

import logging
import sys


def show_logs(level: str = "INFO") -> None:
    """Unless the program has set up logging of its own."""
    logging.basicConfig(
        stream=sys.stderr, level=level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", datefmt="%H:%M:%S"
    )
