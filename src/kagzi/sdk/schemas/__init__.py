"""JSON Schema of the inputs, outputs and signals of workflows."""
