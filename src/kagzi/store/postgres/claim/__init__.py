"""Claims, leases and timers."""
