"""How messages reach a server: addresses, connections, credentials, reconnects."""
