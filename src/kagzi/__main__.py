"""`python -m kagzi`: the same as the `kagzi` command."""

from .cli.main import main

if __name__ == "__main__":
    main()
