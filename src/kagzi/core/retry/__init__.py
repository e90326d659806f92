"""When a failed step is tried again, and why not."""
