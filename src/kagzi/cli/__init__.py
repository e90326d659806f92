"""The `kagzi` command. Importing it imports only click: each command is loaded when it is called."""
