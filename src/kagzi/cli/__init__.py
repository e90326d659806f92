"""KEY CABINET. What people type. Importing it costs click and nothing else: each command is loaded when it is called."""
