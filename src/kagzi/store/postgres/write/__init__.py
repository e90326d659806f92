"""A batch of commands: the fast path, the careful path, and what follows for other runs."""
