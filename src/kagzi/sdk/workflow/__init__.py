"""What users write workflows with: decorators, Context, steps, Retry, Signal, codec."""
