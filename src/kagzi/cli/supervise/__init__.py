"""Child processes of long-running commands: `--processes N`, and the worker of `kagzi dev`."""
