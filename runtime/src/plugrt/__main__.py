"""``python -m plugrt``: the command line."""

from plugrt.cli import main

main()
