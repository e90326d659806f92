"""The state machine of a run: pure functions over values. Both stores, and the fakes of tests, use it."""
