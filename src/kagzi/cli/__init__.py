"""The `kagzi` command. Importing it costs click and nothing else: each command is loaded when it is called."""
