"""HTTP: probes, pages and the API."""
