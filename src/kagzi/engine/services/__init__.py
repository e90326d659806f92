"""Services: one file for each kind of object that users ask for."""
