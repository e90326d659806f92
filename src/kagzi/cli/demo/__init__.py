"""`kagzi demo`: a demo shop."""
