"""The front hall: thin services, the gate every call passes, configuration, lifecycle. `app.py` puts it all together."""
