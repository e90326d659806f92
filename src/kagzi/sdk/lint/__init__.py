"""Reads workflow code without executing it, and names what replay would not survive. ADR 0058."""
