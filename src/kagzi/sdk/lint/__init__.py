"""Reads workflow code without executing it, and finds code that would break on replay. ADR 0058."""
