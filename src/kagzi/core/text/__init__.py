"""Text for people, and URLs that they write."""
