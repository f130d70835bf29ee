"""Characters that a reader does not see, or sees as others, hide no secret and no name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.redaction import letters
from support.strategies import examples

from compact.redaction import MASK, Redactor
from compact.redaction.disguises import undisguise

REDACTOR = Redactor()
TOKEN = f"ghp_{letters('disguise', 36)}"


@pytest.mark.parametrize(
    "veiled",
    [
        TOKEN[:2] + "\u200b" + TOKEN[2:],
        "\u2060".join(TOKEN),
        TOKEN[:9] + "\ufeff\u00ad\ufe0f\U000e0101" + TOKEN[9:],
        "".join(chr(ord(char) + 0xFEE0) for char in TOKEN),
        TOKEN.replace("g", "\U0001d420", 1),
        "\u0301".join(TOKEN),
        TOKEN.replace("_", "\\u005f"),
        TOKEN.replace("_", "%5F"),
        TOKEN.replace("h", "&#104;"),
        f"{TOKEN[:4]}\x1b[01;31m\x1b[K{TOKEN[4:20]}\x1b[m\x1b[K{TOKEN[20:]}",
        f"{TOKEN[:12]}\\u200b{TOKEN[12:]}",
    ],
    ids=["zero-width", "joiners", "several", "full-width", "bold", "accents", "escape", "percent", "entity", "colour", "escaped"],
)  # fmt: skip
def test_a_token_in_other_characters_is_masked_as_a_whole(veiled: str) -> None:
    assert REDACTOR.redact(f"use {veiled} now") == f"use {MASK} now"
    assert REDACTOR.redact_value(["é", f"use {veiled} now"]) == ["é", f"use {MASK} now"]


@pytest.mark.parametrize(
    "letter",
    [
        "&#X67;",
        "&#x00067;",
        "&#00103;",
        "&amp;#103;",
        "\\U00000067",
        "\\u{67}",
        "\\x{67}",
        "\\147",
        "%2567",
        "%252567",
    ],
)
def test_a_letter_that_is_written_as_its_number_is_that_letter(letter: str) -> None:
    assert REDACTOR.redact(f"use {letter}{TOKEN[1:]} now") == f"use {MASK} now"


@pytest.mark.parametrize(
    "hidden",
    [
        *("&shy;", "&zwnj;", "&zwj;", "&amp;shy;", "&#8203;", "&#x200B;", "\\u{200b}", "\\U0000200b"),
        *("\\xe2\\x80\\x8b", "\\342\\200\\213", "%E2%80%8B", "%25E2%2580%258B"),
        *("<wbr>", "<b>", "</i><b>", "<span class='x'>", "<!-- x -->"),
        *("\x1b[38;2;255;100;100;48;2;10;20;30m", "^[[0m", "\\u001b[38;2;1;2;3m"),
        *(
            "\x1b]8;;https://example.org/a/b\x1b\\",
            "\x1b]8;;https://example.org\x07",
            "\\e]8;;https://example.org\\a",
        ),
        *("\x01", "\x1f", "\x7f", "\x9f", "\\x01", "x\b", "xyz\b\b\b", "\\\n", "\\\r\n"),
    ],
)
def test_what_a_reader_does_not_see_inside_a_token_hides_nothing(hidden: str) -> None:
    assert REDACTOR.redact(f"use {TOKEN[:12]}{hidden}{TOKEN[12:]} now") == f"use {MASK} now"


@pytest.mark.parametrize("under", ["_", "", "x"])
def test_overstruck_text_is_read_as_printed(under: str) -> None:
    struck = "".join(f"{under or char}\b{char}" for char in TOKEN)
    assert undisguise(struck).text == TOKEN
    assert TOKEN[4:] not in undisguise(REDACTOR.redact(f"use {struck} now")).text


@pytest.mark.parametrize(
    "name", ["pass\u200bword", "ｐａｓｓｗｏｒｄ", "pass\u00adword", "api\u2060_key", "pass&shy;word"]
)
def test_a_name_in_other_characters_is_the_same_name(name: str) -> None:
    assert REDACTOR.redact_value({name: "letmein"}) == {name: MASK}
    assert REDACTOR.redact(f'{{"{name}": "letmein"}}') == f'{{"{name}": "{MASK}"}}'
    assert REDACTOR.redact(f"{name}=S3cr3t99\n") == f"{name}={MASK}\n"


@pytest.mark.parametrize(
    "text",
    [
        "⚠️ Warning: 1️⃣ first, 👩\u200d💻 second, Compact™ and ½ of it",
        "这是一个测试：请输入您的名字，谢谢！",
        "100%25 of a%20b and \\u00e9 in a string",
        "\x1b[32mPASS\x1b[0m tests/a.py \x1b[31mFAIL\x1b[0m",
        "Ｆｕｌｌ　ｗｉｄｔｈ　ｔｅｘｔ",
        "<p>Set the <b>pass</b>word, <code>List<String></code> and <REDACTED> in 100&nbsp;% of C:\\101\\tmp</p>",
        "curl -s \\\n  -o out.txt \\\n  example.org; printf '%4d %30s\\n'",
    ],
)
def test_ordinary_text_with_such_characters_stays_the_same_object(text: str) -> None:
    assert REDACTOR.redact(text) is text


def test_full_width_signs_after_a_name_are_operators() -> None:
    assert REDACTOR.redact("password：hunter2") == f"password：{MASK}"
    assert REDACTOR.redact("密码：hunter2") == f"密码：{MASK}"


PIECES = st.sampled_from(
    [
        "g",
        "hp_",
        "\u200b",
        "ｗ",
        "é",
        "\u0301",
        "ﬁ",
        "\x1b[0m",
        "\\u0041",
        "%5F",
        "&#95;",
        " ",
        "🔑",
        "\\/",
        "™",
        "\b",
        "<b>",
        "\\147",
        "&shy;",
        "%25",
        "\\xe2\\x80\\x8b",
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=20).map("".join))
@settings(max_examples=examples(200))
def test_every_position_leads_back_to_where_it_comes_from(text: str) -> None:
    seen = undisguise(text)
    before = 0
    for at in range(len(seen.text)):
        start, end = seen.span(at, at + 1)
        assert before <= start < end <= len(text)
        if end - start == 1 and text[start].isascii():
            assert text[start] == seen.text[at]
        before = start
    if seen.text:
        assert seen.span(0, len(seen.text))[1] <= len(text)


@pytest.mark.parametrize(
    "unit",
    [
        "\u200b",
        "a\u200b",
        "ｗ",
        "\x1b[0m",
        "a\x1b[0mb",
        "\\u0041",
        "%41",
        "&#65;",
        "\u0301a",
        "\\",
    ],
)
def test_work_grows_linearly_with_the_disguises(unit: str) -> None:
    """A text of nothing but disguises has as many pieces as disguises, and is found to be clean."""
    seen = undisguise(unit * 20_000)
    assert len(seen.text) <= 40_000
    assert seen.span(0, len(seen.text))[1] <= len(unit) * 20_000
