"""`python -m judgebias` is the command `judgebias`."""

from judgebias.cli import main

if __name__ == "__main__":
    main()
