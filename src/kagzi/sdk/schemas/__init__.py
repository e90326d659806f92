"""JSON Schema of what workflows take, return and wait for."""
