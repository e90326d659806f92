"""What browsers get: the dashboard, and plain pages where it is not there or not wanted."""
