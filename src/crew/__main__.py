"""`python -m crew` is `crew`."""

from crew.front.cli.main import main

main()
