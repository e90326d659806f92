"""The execution of one run: its state, ledger, scopes, delivery, waits and end."""
