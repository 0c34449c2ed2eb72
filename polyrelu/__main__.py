"""``python -m polyrelu``: the command line."""

from polyrelu.cli import main

if __name__ == "__main__":
    main()
