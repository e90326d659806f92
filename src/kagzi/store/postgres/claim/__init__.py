"""Runs go to workers, stay with them, and come back."""
