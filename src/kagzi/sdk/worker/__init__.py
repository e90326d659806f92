"""Worker: its session, slots, heartbeats, watchdog and diagnostics."""
