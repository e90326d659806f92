"""How long tests wait for what is bound to come. Nothing else depends on it: a test passes as soon as it has come."""

LOADED_MACHINE_S = 60.0
"""What an idle machine does at once, one whose processors are taken may take this long for."""
LOADED_MACHINE = f"{LOADED_MACHINE_S:g}s"
