"""The SDK: what users import. It talks to the server by messages only."""
