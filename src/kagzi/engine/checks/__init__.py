"""What may come in. Every refusal names the field, the limit and the remedy."""
