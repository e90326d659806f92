"""Converts messages to core and back. `read_*` reads a message, `write_*` writes one; status.py converts errors."""
