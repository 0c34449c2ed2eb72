"""``python -m polyrelu``: the command line."""

from polyrelu.cli.main import main

if __name__ == "__main__":
    main()
