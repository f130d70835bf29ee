"""`python -m compact.cli`."""

from __future__ import annotations

from compact.cli import main

if __name__ == "__main__":
    main()
