"""The calls of a Context while they are awaited."""
