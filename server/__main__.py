"""`python -m server`: the same as `askable`."""

from server.cli import main

main()
