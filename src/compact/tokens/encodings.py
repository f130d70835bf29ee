"""The two public vocabularies, read from the rank files in this package.

Nothing here uses the network, the home directory or the environment. Each time a file is read, it is decompressed and its
sha256 is checked; `counter` keeps what it builds from it.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from binascii import a2b_base64
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from compact.errors import CompactError


@dataclass(frozen=True, slots=True)
class Encoding:
    """A vocabulary: the pattern that splits text into pieces, and the ranks by which the bytes of a piece are merged."""

    name: str
    pattern: str
    """The split, in tiktoken's regular expression syntax."""
    sha256: str
    """Of the decompressed rank file."""

    def rank_file(self) -> bytes:
        """Return the rank file: one token per line, in base64, and its rank.

        Raises:
            CompactError: the installed file is missing or damaged.
        """
        place = files("compact.tokens").joinpath("ranks", f"{self.name}.tiktoken.gz")
        try:
            data = gzip.decompress(place.read_bytes())
        except (OSError, EOFError, zlib.error) as problem:
            raise self._damaged(f"it cannot be read ({type(problem).__name__})") from problem
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            raise self._damaged(f"its sha256 is {found}, not {self.sha256}")
        return data

    def ranks(self) -> dict[bytes, int]:
        """Return the rank of each token.

        Raises:
            CompactError: as `rank_file`.
        """
        # In these two files the rank is the line number; the checksum guarantees it.
        tokens = self.rank_file().split()[::2]
        return dict(zip(map(a2b_base64, tokens), range(len(tokens)), strict=True))

    def _damaged(self, what: str) -> CompactError:
        return CompactError(
            f"the rank file of {self.name} is damaged: {what}",
            hint="Install compact-context again; tokens cannot be counted without it",
            encoding=self.name,
        )


_CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_WORD_END = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_O200K_PATTERN = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _WORD_END,
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _WORD_END,
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)

ENCODINGS: Mapping[str, Encoding] = MappingProxyType(
    {
        "cl100k_base": Encoding(
            "cl100k_base",
            _CL100K_PATTERN,
            "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        ),
        "o200k_base": Encoding(
            "o200k_base",
            _O200K_PATTERN,
            "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        ),
    }
)
