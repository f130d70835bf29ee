"""The rules for personal data, and the stability harness's rule for digits."""

from __future__ import annotations

import pytest

from compact.redaction import MASK, Redactor

PII = Redactor("pii")
DIGITS = Redactor("digits")


def test_personal_data_is_left_alone_unless_chosen() -> None:
    text = "call +1 (555) 123-4567, ann@example.org, 123-45-6789, 4111 1111 1111 1111"
    assert Redactor().redact(text) is text
    assert PII.redact(text) == f"call {MASK}, {MASK}, {MASK}, {MASK}"


@pytest.mark.parametrize(
    "number",
    [
        "+1-984-182-0190",
        "+46 (0)8 928 571 38",
        "(555) 123-4567",
        "780-999-2181",
        "930.167.3943",
        "+447700677662",
        "0341 8387176",
        "03.93.92.16.85",
        "60-56-85-91",
        "463-612-6138x036",
        "451 5986",
        "9498777106",
    ],
)
def test_phone_numbers_of_many_countries_are_masked(number: str) -> None:
    assert PII.redact(f"Phone: {number}, please") == f"Phone: {MASK}, please"


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-05-15 10:30:00",
        "version 1.22.333",
        "lines 100-2000",
        "192.168.100.200",
        "take 86036 or 1634",
        "size 1048576 bytes",
        "0.123456789",
        "id=550e8400-e29b-41d4-a716-446655440000",
        "sha 9fceb02d0ae598e95dc970b74767f19",
    ],
)
def test_other_numbers_are_not_taken_for_phone_numbers(text: str) -> None:
    assert PII.redact(text) == text


@pytest.mark.parametrize(
    "card", ["4111111111111111", "5500 0000 0000 0004", "3400-000000-00009", "6011000000000004"]
)
def test_card_number_needs_a_correct_check_digit(card: str) -> None:
    assert PII.redact(f"pay with {card} now") == f"pay with {MASK} now"
    wrong = card[:-1] + str((int(card[-1]) + 1) % 10)
    assert PII.redact(f"pay {wrong}") == f"pay {wrong}"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("123-45-6789", MASK),
        ("(555) 123-4567", MASK),
        ("+49 (0)30 123456", MASK),
        ("1,234,567.89", MASK),
        ("2024-05-15 15:00:00", MASK),
        ("call 555 1234 or 99", f"call {MASK} or 99"),
        ("Order 12345 has 3 items", f"Order {MASK} has 3 items"),
        ("abc123def", f"abc{MASK}def"),
        ("x=(123)", f"x=({MASK})"),
        ("١٢٣٤ and 12", f"{MASK} and 12"),
        ("v1.2.3 at 10:30, 12 of 34", None),
    ],
)
def test_digits_rule_takes_a_grouped_number_as_one(text: str, masked: str | None) -> None:
    assert DIGITS.redact(text) == (masked or text)


def test_digits_rule_leaves_no_run_of_three_digits() -> None:
    text = "tel 030/1234-567, id 99 8888 77, 1 22 333 4444 55555; a1b22c333 (12)345"
    masked = DIGITS.redact(text)
    assert not any(masked[at : at + 3].isdigit() for at in range(len(masked)))
