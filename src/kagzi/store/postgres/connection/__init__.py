"""Connections to the database, and the classification of its failures."""
