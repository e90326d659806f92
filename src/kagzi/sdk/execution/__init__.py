"""One run being executed: its state, ledger, scopes, delivery, waits and end."""
