"""Private keys are masked in the pieces and the views that tools show of them."""

from __future__ import annotations

import pytest
from support.redaction import letters

from compact.redaction import MASK, Redactor

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
LINES = [letters(f"key {number}", 64, BASE64) for number in range(6)]
SSH_LINES = [letters(f"ssh {number}", 70, BASE64) for number in range(6)]
REDACTOR = Redactor()


def _leaves_nothing(text: str, lines: list[str]) -> bool:
    masked = REDACTOR.redact(text)
    return MASK in masked and not any(
        line[at : at + 8] in masked for line in lines for at in range(len(line) - 7)
    )


@pytest.mark.parametrize("lines", [LINES, SSH_LINES], ids=["OpenSSL", "OpenSSH"])
@pytest.mark.parametrize(
    "view",
    [
        "{line}\n",
        "{number:>6}\t{line}\n",
        "{number:>5}→{line}\n",
        "{number}:{line}\n",
        "id_rsa-{number}-{line}\n",
        "2026-11-16T10:00:00Z web | {line}\n",
        "+{line}\n",
        "> {line}\r\n",
        '    "{line}\\n" +\n',
        "{line}\\n",
        "{line}\\\\n",
        "{line}%0A",
    ],
)
def test_lines_from_the_middle_of_a_key_are_masked(lines: list[str], view: str) -> None:
    shown = "".join(view.format(number=number, line=line) for number, line in enumerate(lines, 4))
    assert _leaves_nothing(shown, lines)
    assert _leaves_nothing(f"$ sed -n 4,9p key.pem\n{shown}", lines)


def test_a_chunk_that_begins_and_ends_within_lines_is_masked() -> None:
    chunk = "\n".join(LINES)[40:-30]
    assert _leaves_nothing(chunk, chunk.split("\n"))


def test_the_end_of_a_key_is_masked_with_its_last_line() -> None:
    text = f"{LINES[0]}\nAbCdEfGh12==\n-----END EC PRIVATE KEY-----\nbye"
    assert REDACTOR.redact(text) == f"{MASK}\nbye"


@pytest.mark.parametrize(
    "first",
    [
        "MIIEowIBAAKCAQEA",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
        "MHcCAQEEI",
        "b3BlbnNzaC1rZXktdjEA",
        "MC4CAQAwBQYDK2VwBCIEI",
    ],
)
def test_a_key_is_known_by_its_first_characters(first: str) -> None:
    line = first + letters(first, 40, BASE64)
    assert REDACTOR.redact(f"cat: {line} (cut)") == f"cat: {MASK} (cut)"


@pytest.mark.parametrize("blank", ["%20", "+", "&#32;", "\\u0020"])
def test_a_key_block_with_encoded_blanks_is_masked(blank: str) -> None:
    body = "%0A".join(LINES)
    text = f"key=-----BEGIN{blank}PRIVATE{blank}KEY-----%0A{body}%0A-----END{blank}PRIVATE{blank}KEY-----"
    assert _leaves_nothing(text, LINES)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN CERTIFICATE-----\n" + "\n".join(LINES) + "\n-----END CERTIFICATE-----\n",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" + "\n".join(LINES) + "\n",
        "iVBORw0KGgo" + LINES[0][11:] + "\n" + "\n".join(LINES[1:]) + "\n",
        "\n".join(letters(f"hash {number}", 64, "0123456789abcdef") for number in range(4)) + "\n",
        f"see {LINES[0]}\nfor more\n",
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\ncGxlLmNvbS9pc19yb290Ijp0cnVlfQ\n",
        "A" * 64 + "\n" + "A" * 64 + "\n",
    ],
    ids=["certificate", "public key", "picture", "hashes", "one line in prose", "text", "filler"],
)
def test_other_lines_of_that_width_stay(text: str) -> None:
    assert REDACTOR.redact(text) == text


def test_a_single_line_is_masked_if_it_is_all_there_is() -> None:
    assert REDACTOR.redact(LINES[0] + "\n") == f"{MASK}\n"
