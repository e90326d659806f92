"""The state machine of a run: pure functions over values. Both stores and the test fakes use it."""
