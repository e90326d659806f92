"""Commands for Kagzi's tables in the users' databases."""
