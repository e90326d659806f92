"""`kagzi dev`."""
