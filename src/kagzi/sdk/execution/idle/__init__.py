"""Detects that a run can only wait."""
