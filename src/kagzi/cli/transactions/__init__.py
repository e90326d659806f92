"""Commands about what Kagzi writes in the databases of its users."""
