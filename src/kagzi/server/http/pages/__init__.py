"""Pages for browsers: the dashboard, and plain pages where it is missing or not wanted."""
