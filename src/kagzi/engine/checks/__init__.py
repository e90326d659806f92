"""Checks of input. Every refusal names the field, the limit and the remedy."""
