"""`python -m bench`: see `python -m bench --help` and bench/README.md."""

from bench.cli import main

if __name__ == "__main__":
    main(prog_name="python -m bench")
