"""How the database is reached, and what its failures mean."""
