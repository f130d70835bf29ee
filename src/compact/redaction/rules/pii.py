"""Personal data: a set of its own, off unless chosen. Wherever a number has a check digit, it is checked."""

from __future__ import annotations

from compact.redaction.rules.rule import Rule


def pii_rules() -> list[Rule]:
    """Phone, payment card, national ids, bank account, e-mail."""
    return [
        Rule(
            "email",
            r"(?P<secret>[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
            r"[A-Za-z]{2,24})\b",
            ("@",),
        ),
        Rule(
            "payment-card",
            r"(?P<secret>(?:[3-6]\d|1800|2131|2[2-7])\d{2}(?:[ -]?\d){8,16})",
            (),
            "payment_card",
        ),
        Rule("us-ssn", r"\b(?P<secret>\d{3}-\d{2}-\d{4})\b", ("-",), "us_ssn"),
        Rule(
            "us-ssn-spelled",
            r"\b(?P<secret>\d{3} ?\d{2} ?\d{4})\b",
            (),
            "near_social_security",
        ),
        Rule(
            "iban",
            r"\b(?P<secret>[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)\b",
            (),
            "iban",
        ),
        Rule(
            "phone",
            r"(?P<secret>(?:\+|\b00)?\(?\d{1,4}\)?(?:[ .\-/]?\(?\d{1,5}\)?){1,6}(?:[ ]?(?:x|ext\.?)[ ]?\d{1,6})?)",
            (),
            "phone",
        ),
        *_national_ids(),
    ]


def _national_ids() -> list[Rule]:
    return [
        Rule(
            "cn-resident-id",
            r"\b(?P<secret>[1-9]\d{5}(?:18|19|20)\d{2}[01]\d[0-3]\d{4}[\dXx])\b",
            (),
            "cn_resident",
        ),
        Rule("es-dni", r"\b(?P<secret>(?:\d{8}|[XYZ]\d{7})[ -]?[A-Z])\b", (), "es_dni"),
        Rule("br-cpf", r"\b(?P<secret>\d{3}\.?\d{3}\.?\d{3}-?\d{2})\b", (), "br_cpf"),
        Rule("in-aadhaar", r"\b(?P<secret>[2-9]\d{3}[ -]?\d{4}[ -]?\d{4})\b", (), "in_aadhaar"),
        Rule(
            "fr-nir",
            r"\b(?P<secret>[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2})\b",
            (),
            "fr_nir",
        ),
        Rule("uk-nino", r"\b(?P<secret>[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D])\b"),
        Rule("it-codice-fiscale", r"\b(?P<secret>[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z])\b"),
        Rule("kr-rrn", r"\b(?P<secret>\d{2}[01]\d[0-3]\d-[1-8]\d{6})\b", ("-",)),
        Rule(
            "identity-document",
            r"\b(?P<secret>[A-Z0-9]{1,4}[- ]?\d{2,9}(?:[- ]\d{2,6})*)\b",
            (),
            "near_licence",
        ),
    ]


_DIGIT = r"[\d\p{Nd}]"


def digit_rules() -> list[Rule]:
    """The stability harness's rule: three or more digits in a row, with the groups that belong to the same number."""
    joint = r"(?:\) ?|(?:[-./:,]| )\(?)"
    return [
        Rule(
            "digits",
            rf"\+?(?:\({_DIGIT}{{1,4}}\) ?)?(?:{_DIGIT}{{1,4}}{joint})*{_DIGIT}{{3,}}"
            rf"(?:(?:\) ?|[-./:,]\(?){_DIGIT}+| \(?{_DIGIT}{{2,}})*",
        )
    ]
