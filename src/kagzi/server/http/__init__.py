"""HTTP: probes and plain pages."""
