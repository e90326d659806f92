"""Commands for workflow developers."""
