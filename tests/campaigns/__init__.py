"""What takes minutes and a quiet machine: sizes, restarts and servers side by side. `make campaigns`; not in `make
test`."""
