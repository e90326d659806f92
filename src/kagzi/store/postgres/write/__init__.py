"""Writes a batch of commands: the fast path, the careful path, and the effects on other runs."""
