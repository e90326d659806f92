"""Writes a recorded run as a test for pytest."""
