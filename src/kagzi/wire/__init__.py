"""The post room: letters to core and back. `read_*` reads a letter, `write_*` writes one; status.py is for errors."""
