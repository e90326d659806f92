"""Programs that are type-checked, not run: what must pass, what must be rejected, what must be noticed."""
