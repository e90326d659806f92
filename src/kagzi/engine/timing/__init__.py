"""Time: timers, schedules, the clock of the store."""
