"""The `compact` command. One file per command: parse, call the library, print."""

from __future__ import annotations

import sys

from compact.errors import MissingExtra

__all__ = ["main"]

_PARTS_OF_THE_EXTRA = ("typer", "rich", "click")


def main() -> None:
    """Run the command and exit: 0 fine, 1 a check failed, 2 bad input or usage."""
    try:
        from compact.tools.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PARTS_OF_THE_EXTRA:
            raise
        sys.stderr.write(f"compact: {MissingExtra.named('cli', 'the command line')}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))
