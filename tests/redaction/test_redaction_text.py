"""Secrets in text are masked, their names are kept, and ordinary code is left alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.redaction import letters

from compact.redaction import MASK, Redactor

REDACTOR = Redactor()
GENERATED = letters("value", 24)


def test_scenario_redaction_before_archival_masks_api_keys_and_passwords() -> None:
    """Compaction specification, "Redaction before archival": its two patterns, and its mask."""
    assert MASK == "<REDACTED>"
    assert REDACTOR.redact("api_key=sk-abc123") == "api_key=<REDACTED>"
    assert REDACTOR.redact("Api-Key : sk-abc123") == "Api-Key : <REDACTED>"
    assert REDACTOR.redact("PASSWORD= hunter2") == "PASSWORD= <REDACTED>"


@pytest.mark.parametrize("value", ["secret", "secret123", "letmein", "x", "12345", "a-b_c", "correcthorse"])
@pytest.mark.parametrize("name", ["password", "api_key"])
def test_weak_passwords_are_masked_too(name: str, value: str) -> None:
    assert REDACTOR.redact(f"{name}={value}") == f"{name}={MASK}"
    assert REDACTOR.redact(f'{{"{name}": "{value}"}}') == f'{{"{name}": "{MASK}"}}'


@pytest.mark.parametrize(
    "text", ["token=abc123", "Authorization: Bearer abc123", "auth_token: xyz789", "secret: abc123"]
)
def test_short_tokens_are_masked(text: str) -> None:
    assert REDACTOR.redact(text).endswith(MASK)


def test_scenario_default_redaction_covers_the_four_kinds() -> None:
    """Compaction specification, "Security and Redaction": API keys, passwords, tokens, private keys, by default."""
    key = f"-----BEGIN PRIVATE KEY-----\n{letters('k', 64)}\n-----END PRIVATE KEY-----"
    text = f"api_key={GENERATED}\npassword: hunter2\ntoken={GENERATED}\n{key}"
    assert Redactor().redact(text) == f"api_key={MASK}\npassword: {MASK}\ntoken={MASK}\n{MASK}"


API_KEY_PATTERN = re.compile(r"(?i)api[_-]?key\s*[:=]\s*(?P<value>\S+)")
PASSWORD_PATTERN = re.compile(r"(?i)password\s*[:=]\s*(?P<value>\S+)")


def _leftover(masked: str) -> str:
    """Letters and digits that stand where one of the two patterns finds a value."""
    found = [
        match["value"].replace(MASK, "")
        for pattern in (API_KEY_PATTERN, PASSWORD_PATTERN)
        for match in pattern.finditer(masked)
    ]
    return "".join(char for value in found for char in value if char.isalnum())


@given(
    text=st.from_regex(API_KEY_PATTERN, fullmatch=True) | st.from_regex(PASSWORD_PATTERN, fullmatch=True),
    before=st.sampled_from(["", "x ", "see\n", "db_", '{"', "é "]),
)
def test_the_two_patterns_of_the_specification_are_covered(text: str, before: str) -> None:
    """Of whatever they match, no letter and no digit of the value stays, and the name does."""
    matched = API_KEY_PATTERN.fullmatch(text) or PASSWORD_PATTERN.fullmatch(text)
    assert matched
    value = matched["value"]
    assume(value.isascii() or any(char.isdigit() for char in value))  # a word in another script is a text
    masked = REDACTOR.redact(before + text)
    assert masked.startswith(before + text[: matched.start("value")])
    assert _leftover(masked) == ""
    if any(char.isalnum() for char in value):
        assert masked.count(MASK) == 1
    assert REDACTOR.redact(masked) == masked


@given(
    st.lists(
        st.sampled_from([*"aZ9é =:;,&\"'`(){}[]<>|\\\n\t-_.$", "password", "api-key", "apikey="]), max_size=40
    )
)
def test_nothing_that_the_two_patterns_find_in_any_text_stays(pieces: list[str]) -> None:
    text = "".join(pieces)
    values = [
        match["value"] for found in (API_KEY_PATTERN, PASSWORD_PATTERN) for match in found.finditer(text)
    ]
    masked = REDACTOR.redact(text)
    for value in values:
        words = [
            word for word in re.findall(r"[a-zA-Z0-9]+", value) if len(word) > 3 and text.count(word) == 1
        ]
        assert not [word for word in words if word in masked], (text, masked)


@pytest.mark.parametrize(
    "value", ["changeme", "password", "str", "null", "${DB_PASSWORD}", "********", "YOUR_KEY"]
)
@pytest.mark.parametrize(
    "form", ["{}={}", "{}:{}", "{}: {}", "{} = {}", "{}:\n{}", "{}=\n\n  {}", '{}: "{}"', "{}='{}'"]
)
@pytest.mark.parametrize("name", ["password", "api_key", "DB_PASSWORD", "OPENAI-API-KEY", "dbpassword"])
def test_a_value_after_a_plain_name_is_masked_whatever_it_is(name: str, form: str, value: str) -> None:
    assert REDACTOR.redact(form.format(name, value)) == form.format(name, MASK)


PLAIN = r"""
password: str|password: <REDACTED>
password: str = ""|password: str = ""
def login(self, password: str) -> Token:|def login(self, password: str) -> Token:
api_key=os.environ["X"]|api_key=os.environ["X"]
apiKey: process.env.OPENAI_API_KEY,|apiKey: <REDACTED>,
password: await bcrypt.hash(password, 10),|password: await bcrypt.hash(password, 10),
login failed (password: expired)|login failed (password: <REDACTED>)
password: "Enter your password"|password: "Enter your password"
https://x.example/y?password=v&z=1 ok|https://x.example/y?password=<REDACTED> ok
Server=db;password=a;b;Database=x|Server=db;password=<REDACTED>
if password == given:|if password == given:
password: {{ vault_password }}|password: {{ vault_password }}
password: ${{ secrets.X }}|password: ${{ secrets.X }}
"Set API_KEY=" + key,|"Set API_KEY=" + key,
password: {|password: {
"""


@pytest.mark.parametrize("line", PLAIN.strip().split("\n"))
def test_what_counts_as_the_value_after_a_plain_name(line: str) -> None:
    """All up to the next blank, unless it is an expression, a type, a sentence, an operator or opens a structure."""
    text, masked = line.split("|")
    assert REDACTOR.redact(text) == masked


FORMS = """\
{name} = "{value}"
{name}='{value}'
"{name}": "{value}"
{name}: {value}
  - {name}: {value}
{name}={value}
export {name}={value}
{name} := `{value}`
{name} => '{value}'
${name} = "{value}";
const {name}: string = "{value}";
{name}: str = "{value}"
if {name} == "{value}":
os.environ["{name}"] = "{value}"
connect(user="x", {name}="{value}")
System.setProperty("{name}", "{value}")
{name}("{value}")
--{name} {value}
--{name}={value}
-{name} '{value}'
ENV {name} {value}
<{name}>{value}</{name}>
<add key="{name}" value="{value}"/>
https://x.example/y?{name}={value}&z=1
{{\\"{name}\\": \\"{value}\\"}}
**{name}:** `{value}`
| {name} | {value} |
my {name} is {value}
Server=db;{name}={value};Database=x"""


@pytest.mark.parametrize("name", ["password", "apiKey", "CLIENT_SECRET", "auth_token", "db.passwd", "token"])
@pytest.mark.parametrize("form", FORMS.split("\n"))
def test_assignments_are_found_in_every_language(form: str, name: str) -> None:
    text = form.format(name=name, value=GENERATED)
    masked = REDACTOR.redact(text)
    if name in ("password", "apiKey"):
        # The specification's patterns take all up to the next blank: the rest of an address.
        text = re.sub(rf"({GENERATED})(?:&z=1|;Database=x)", r"\1", text)
    assert masked == text.replace(GENERATED, MASK)


@pytest.mark.parametrize(
    "form",
    ['- name: {name}\n  value: "{value}"', "{name}:\n{value}", "{name}: |\n  {value}\nnext: 1"],
)
def test_assignments_over_two_lines_are_found(form: str) -> None:
    text = form.format(name="db_password", value=GENERATED)
    assert REDACTOR.redact(text) == text.replace(GENERATED, MASK)


CODE = r"""
token = get_token()
max_tokens: 2000
tokens_before=123
"max_tokens": 4096, "total_tokens": 1000
token: $GITHUB_TOKEN
const token = await getToken(user.id);
if token == "": return None
token_count = len(tokens)
token: str = Field(..., description="The token")
secret_name: my-secret
"password": {"type": "string", "description": "The password"}
sort_key="created_at"
cache_key = f"{user_id}:{page}"
token := lexer.Next()
Authorization: Bearer $TOKEN
headers = {"Authorization": f"Bearer {token}"}
headers: { Authorization: `Bearer ${token}` }
docker run -u 1000:1000 image
git push -u origin main:main
git@github.com:user/repo.git
commit 9fceb02d0ae598e95dc970b74767f19372d61af8
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
session_id: 550e8400-e29b-41d4-a716-446655440000
"tool_call_id": "toolu_01BrzHwvp9pXCWkccrPABPuk"
pad_token="<|endoftext|>"
PASSWORD_MIN_LENGTH = 8
from .auth import get_current_user, create_access_token
SECRET_KEY = os.urandom(32)
secret = secrets.token_hex(16)
The password is required
passwords = passwords if passwords else []
PWD=/home/user/project
public_key = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7"
private_key_path = "/etc/ssl/private/key.pem"
credentials: include
auth=HTTPBasicAuth(user, password)
token_limit: 128000
apiKey  string `json:"api_key"`
password VARCHAR(255) NOT NULL
token = line.split()[0]
token = "hello"
{"token": "Hello", "logprob": -0.01}
print(f"token: {token}")
arn:aws:secretsmanager:*:*:secret:marketplace-2024*
"AWS::IAM::AccessKey": "72c2d9dd90025459"
styles = {Token: "#f8f8f2"}
PrivateKey = Ed25519PrivateKey | Ed448PrivateKey | X25519PrivateKey
jsonnet_token = r'[^\W\d]\w*'
--max-tokens 4096
--password-stdin
"""


@pytest.mark.parametrize("line", CODE.strip().split("\n"))
def test_code_expressions_and_placeholders_are_not_masked(line: str) -> None:
    assert REDACTOR.redact(line) is line


def test_text_without_secrets_comes_back_as_the_same_object() -> None:
    text = "The quick brown fox. " * 500
    assert REDACTOR.redact(text) is text


def test_scan_counts_spans_and_names_the_rules() -> None:
    found = REDACTOR.scan(f"api_key=sk-abc123 and password: hunter2 and password: {GENERATED}")
    assert (found.count, dict(found.by_rule)) == (3, {"api-key": 1, "password": 2})
    assert REDACTOR.scan("nothing here").count == 0


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            "git clone https://x-access-token:S3cr3t99@github.com/a/b",
            "git clone https://x-access-token:{}@github.com/a/b",
        ),
        ("postgres://bob:p@ss:w0rd9@db.example/x", "postgres://bob:{}@db.example/x"),
        ("redis://:S3cr3t99@cache:6379", "redis://:{}@cache:6379"),
        (f"git+https://{GENERATED}:x-oauth-basic@github.com/a", "git+https://{}:x-oauth-basic@github.com/a"),
        ("mongodb://username:password@localhost:27017", None),
        ("http://localhost:3000/a@b and ssh git@host:22", None),
    ],
)
def test_logins_in_urls_are_masked(text: str, masked: str | None) -> None:
    assert REDACTOR.redact(text) == (masked or text).format(MASK)


def test_adjacent_and_overlapping_matches_are_one_mask() -> None:
    token = f"ghp_{letters('gh', 36)}"
    assert REDACTOR.redact(f"password={token}") == f"password={MASK}"
    assert REDACTOR.scan(f"password={token}").count == 1


def test_value_that_is_longer_than_the_read_limit_is_masked() -> None:
    long = letters("long", 3_000)
    masked = REDACTOR.redact(f"api_key={long}")
    assert len(masked) < 2_500


def test_line_of_ten_megabytes_is_read_to_its_end() -> None:
    text = f"{'x' * 5_000_000} api_key=sk-abc123 {'y ' * 2_500_000}"
    assert REDACTOR.redact(text) == text.replace("sk-abc123", MASK)


@pytest.mark.parametrize("noise", ["\ud800", "\x00", "é", "密", "\u2028", "😀"])
def test_unusual_characters_do_not_shift_the_mask(noise: str) -> None:
    text = f"{noise * 3} api_key=sk-abc123 {noise} password: hunter2 {noise}"
    assert REDACTOR.redact(text) == f"{noise * 3} api_key={MASK} {noise} password: {MASK} {noise}"


def test_disabled_redactor_returns_everything_unchanged() -> None:
    off = Redactor.disabled()
    message = {"role": "user", "content": "password=hunter2"}
    assert off.enabled is False
    assert Redactor().enabled is True
    assert off.redact("password=hunter2") == "password=hunter2"
    assert off.scan("password=hunter2").count == 0
    assert off.redact_message(message) is message
    assert off.redact_messages([message]) == [message]
    assert off.redact_value(message) is message
    assert off.session().enabled is False


BLOCK = f"""db:
  password: |
    {GENERATED}
    {letters("second line", 20)} and more

    {letters("third line", 20)}
  user: bob
"""


def test_every_line_of_a_yaml_block_is_masked() -> None:
    assert REDACTOR.redact(BLOCK) == f"db:\n  password: |\n    {MASK}\n  user: bob\n"
    prose = "password: |\n  please choose\n  a good one\n"
    assert REDACTOR.redact(prose) == prose


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mpassword={}\x1b[0m ok",
        "\x1b[31mpassword\x1b[0m=\x1b[1;32m{}\x1b[0m ok",
        "&quot;api_key&quot;:&quot;{}&quot;,&quot;n&quot;",
        "&#34;password&#34;: &#34;{}&#34;",
        "password%3D{}",
        '{{"password": {}, "n": ',
        "password: {}\n",
    ],
)
@pytest.mark.parametrize("value", ["Zx9Qw8Er7", "7351902846"])
def test_markup_around_a_field_does_not_hide_its_value(text: str, value: str) -> None:
    """Terminal colours, HTML quotes, URL escapes, and JSON that breaks off."""
    assert REDACTOR.redact(text.format(value)) == text.format(MASK)


@pytest.mark.parametrize("length", [1_023, 1_024, 1_025, 5_000])
def test_long_value_is_masked_to_its_end(length: int) -> None:
    assert REDACTOR.redact(f"password={letters('long', length)} ok") == f"password={MASK} ok"


@pytest.mark.parametrize("words", ["correct horse battery", "correct horse battery staple"])
def test_unquoted_passphrase_is_masked_to_the_end_of_its_line(words: str) -> None:
    assert REDACTOR.redact(f"password: {words}\nuser: bob") == f"password: {MASK}\nuser: bob"


@pytest.mark.parametrize("text", ['Error("passphrase: mismatch")', "login failed (secret: expired)"])
def test_message_about_a_password_is_not_masked(text: str) -> None:
    assert REDACTOR.redact(text) == text
