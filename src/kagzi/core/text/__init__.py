"""Text that people read, and URLs that they write."""
