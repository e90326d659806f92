"""When a failed step is retried, and why it is not."""
