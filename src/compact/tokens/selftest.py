"""A fixed test that a faster counter must pass before it is used.

Each line is a text and tiktoken's counts of it in cl100k_base and o200k_base (a test counts them again). They are
chosen where tokenizers differ: contractions, case changes, digits, special tokens, surrogates, marks, scripts, blanks.
"""

from __future__ import annotations

from collections.abc import Callable

SAMPLES: tuple[tuple[str, int, int], ...] = (
    ("", 0, 0),
    ("a", 1, 1),
    (" ", 1, 1),
    ("  ", 1, 1),
    ("\n", 1, 1),
    ("hello world", 2, 2),
    ("Hello, World! It's 2026.", 10, 9),
    ("don't WON'T we'Ll they've I'D x'S", 13, 11),
    ("def f(x):\n    return x ** 2  # square\n\n\n", 14, 14),
    ("\t\tif (a && b) { c[0] -= 1; }\r\n\r\n", 17, 17),
    ('{"path": "src/main.py", "line": 42, "ok": true}', 19, 19),
    ("https://example.org/a/b?c=1&d=%20#e", 16, 16),
    ("0 1 12 123 1234 12345 3.14159 1,000,000 0x7F 1e-9", 34, 34),
    ("aB aBC ABc AB_cd HTTPServerError getURLForID", 14, 15),
    ("<|endoftext|>", 7, 7),
    ("a<|endoftext|>b<|im_start|>user<|im_end|>", 22, 22),
    ("<|fim_prefix|><|endofprompt|><|channel|>", 17, 16),
    ("<| endoftext |> <||> |>", 10, 10),
    ("\ud800", 1, 1),
    ("a\udc00b\ud83d", 4, 4),
    ("\ud83d\ude00 pair", 3, 2),
    ("\x00\x01\x02\x7f", 4, 4),
    ("\x1c\x1d\x1e\x1f x", 5, 5),
    ("\ufeffbom", 3, 2),
    ("\u200b\u200d\u2060", 5, 3),
    ("你好，世界。请检查数据库连接。", 13, 9),
    ("人工知能は働き方を変えています。", 16, 12),
    ("인공지능은 빠르게 바뀌고 있습니다.", 19, 12),
    ("Привет, как дела? ЁЖ", 12, 8),
    ("مرحبا بالعالم ١٢٣", 17, 8),
    ("नमस्ते दुनिया १२३", 20, 8),
    ("สวัสดีชาวโลก", 13, 7),
    ("Γειά σου Κόσμε ΣΑΣ ὈΔΥΣΣΕΎΣ", 36, 21),
    ("Straße ÄÖÜ ﬁ ǅ ʰ ª", 15, 14),
    (
        "\U0001f600\U0001f44d\U0001f3fd\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f1e9\U0001f1ea\u2764\ufe0f\u200d\U0001f525 ok",
        41,
        23,
    ),
    ("é ñ ä́ ́", 11, 9),
    ("∀x∈ℝ: x²≥0 ½ ⅷ ①", 21, 18),
    ("— “quoted” … €100 £5 ¥7", 11, 11),
    ("   leading", 2, 2),
    ("trailing   ", 3, 3),
    ("a  b   c    d     e", 9, 9),
    (" \n \n\n  \n x", 4, 4),
    ("\n\n\nx\n\n", 3, 3),
    ("\xa0\u2003\u3000x\u2028y\u2029z\x85w", 14, 12),
    ("x \t \t y", 4, 4),
    ("!\n\n//\n/x", 3, 4),
    ("...\r\n---\r\n", 2, 3),
    ("a" * 1000, 125, 125),
    (" " * 1000, 9, 9),
    (" " * 999 + "x", 10, 10),
    ("\n" * 500, 17, 32),
    ("-" * 777, 13, 13),
    ("ab" * 333, 333, 167),
    ("=" * 80 + "\n", 2, 2),
    ("0123456789" * 50, 167, 167),
    ("𝒳𝓎 𐍈 𠜎", 16, 16),
    ("A" * 300 + "b" * 300, 114, 114),
)


def first_mismatch(encoding: str, count: Callable[[str], int]) -> str:
    """Describe the first sample that `count` counts differently; empty if there is none."""
    for text, cl100k, o200k in SAMPLES:
        expected = cl100k if encoding == "cl100k_base" else o200k
        found = count(text)
        if found != expected:
            return f"{text[:40]!a} is {expected} tokens, it says {found}"
    return ""
