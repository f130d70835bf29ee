"""`python -m compact`: the command."""

from __future__ import annotations

from compact.tools.cli import main

if __name__ == "__main__":
    main()
