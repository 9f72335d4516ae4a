"""``python -m dphmm``: the command line."""

from dphmm.cli import main

if __name__ == "__main__":
    main()
