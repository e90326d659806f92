"""The tools for writing workflows: decorators, Context, steps, Retry, Signal, codec."""
