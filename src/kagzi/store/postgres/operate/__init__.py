"""Everything else that people look after."""
