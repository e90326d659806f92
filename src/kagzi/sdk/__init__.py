"""The guest house: what users import. It reaches the server by message only."""
