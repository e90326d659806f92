"""What the clock does: timers, schedules, the clock of the store."""
