"""Workflow types: their names, versions, queues and limits."""
