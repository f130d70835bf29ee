"""Text without secrets stays as it is: source code, texts of interfaces, ids."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random

from bench import Figure
from bench.attack import Attack, Trial
from compact.redaction import Redactor

PACKAGES = {
    "aiohttp": "aiohttp", "anthropic": "anthropic", "anyio": "anyio", "boto3": "boto3", "botocore": "botocore", "click": "click",
    "cryptography": "cryptography", "docker": "docker", "flask": "flask", "httpcore": "httpcore", "httpx": "httpx",
    "huggingface_hub": "huggingface_hub", "jinja2": "jinja2", "jwt": "PyJWT", "langchain": "langchain", "langchain_core": "langchain-core",
    "langgraph": "langgraph", "mcp": "mcp", "openai": "openai", "pydantic_settings": "pydantic-settings", "requests": "requests",
    "s3transfer": "s3transfer", "starlette": "starlette", "tornado": "tornado", "urllib3": "urllib3", "uvicorn": "uvicorn",
    "websockets": "websockets", "werkzeug": "Werkzeug", "yarl": "yarl",
}  # fmt: skip
"""Packages of constraints.txt whose sources speak of passwords, keys and tokens: the folder and the distribution of each."""
MOST_MASKS = 10
_FULL = 100
"""From this size on all sources are read, which takes some seconds."""
_TESTS = {"tests", "test", "testing", "_tests"}

_WORDS = {
    "password": (
        "Passwort", "Kennwort", "Mot de passe", "Contraseña", "Senha", "Palavra-passe", "Wachtwoord", "Hasło", "Heslo", "Jelszó",
        "Parola", "Şifre", "Пароль", "Парола", "Лозинка", "Κωδικός", "密码", "密碼", "パスワード", "비밀번호", "รหัสผ่าน", "كلمة المرور",
        "סיסמה", "पासवर्ड", "Mật khẩu", "Kata sandi", "Lösenord", "Adgangskode", "Passord", "Salasana", "Slaptažodis", "Password",
    ),
    "new": ("Neues", "Nouveau", "Nueva", "Nova", "Nieuw", "Nowe", "Nové", "Új", "Nuova", "Yeni", "Новый", "Νέος", "新", "新しい", "새", "New"),
    "forgot": (
        "vergessen?", "oublié ?", "olvidada", "esquecida?", "vergeten?", "zapomniane?", "zapomenuto?", "elfelejtve", "dimenticata?",
        "unutuldu", "забыт?", "忘记", "をお忘れですか？", "잊으셨나요?", "forgotten?", "glömt?", "glemt?", "unohtui?",
    ),
    "rule": (
        "muss mindestens {n} Zeichen lang sein", "doit contenir au moins {n} caractères", "debe tener al menos {n} caracteres",
        "deve ter pelo menos {n} caracteres", "moet minstens {n} tekens bevatten", "musi mieć co najmniej {n} znaków",
        "должен содержать не менее {n} символов", "必须至少包含 {n} 个字符", "は{n}文字以上で入力してください", "must have at least {n} characters",
        "is required", "stimmt nicht überein", "ne correspond pas", "no coincide", "非匹配", "is too common",
    ),
}  # fmt: skip
_TEXT_NAMES = (
    "password", "newPassword", "LABEL_NEW_PASSWORD", "login.password", "auth.password.label", "confirm_password", "passwordHint",
    "forgotPassword", "password_placeholder", "errors.password", "api_key", "accessToken", "token", "secret", "PASSWORD_RULE",
    "user.form.password", "settings.apiKey", "resetPassword", "passwordTooShort", "client_secret",
)  # fmt: skip
_ID_NAMES = (
    "id", "key", "hash", "etag", "commit", "cache_key", "partition_key", "object_key", "uuid", "sha256", "digest", "request_id",
    "session_id", "row_key", "primary_key", "idempotency_key", "checksum", "revision", "parent", "trace_id", "public_key_id", "Key",
)  # fmt: skip


def sources(seed: Random, size: int) -> Iterator[Path]:
    """The modules of the packages, without their tests. At a small size, some of them."""
    folder = Path(sysconfig.get_paths()["purelib"])
    paths = [
        path
        for package in PACKAGES
        for path in sorted((folder / package).rglob("*.py"))
        if _TESTS.isdisjoint(path.relative_to(folder).parts)
        and not path.name.startswith(("test_", "conftest"))
    ]
    yield from paths if size >= _FULL else seed.sample(paths, min(size, len(paths)))


def _read_sources(seed: Random, size: int) -> Iterator[Figure]:
    redactor = Redactor()
    masks = chars = 0
    for path in sources(seed, size):
        text = path.read_text(encoding="utf-8", errors="replace")
        chars += len(text)
        masks += redactor.scan(text).count
    if size >= _FULL:
        print("        " + ", ".join(_versions()), file=sys.stderr)
    yield Figure(f"masks in {chars / 1e6:.1f} MB of installed sources", masks, "", MOST_MASKS)


def _versions() -> Iterator[str]:
    for name in PACKAGES.values():
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} (not installed)"


def _text(seed: Random) -> str:
    password, new = seed.choice(_WORDS["password"]), seed.choice(_WORDS["new"])
    kind = seed.randrange(5)
    if kind == 0:
        return password
    if kind == 1:
        return f"{new} {password}" if new.isascii() else f"{new}{password}"
    if kind == 2:
        return f"{password} {seed.choice(_WORDS['forgot'])}"
    if kind == 3:
        return f"{password} {seed.choice(_WORDS['rule'])}".replace("{n}", str(seed.randint(6, 12)))
    return f"{new} {password}{seed.choice((':', '*', '…', ''))}"


def _write_text(seed: Random, name: str, text: str) -> str:
    flat = name.replace(".", "_")
    forms: tuple[Callable[[], str], ...] = (
        lambda: json.dumps({"title": "Demo", name: text, "submit": "OK"}, ensure_ascii=False, indent=2),
        lambda: json.dumps({"de": {name: text}}, ensure_ascii=True),
        lambda: f"de:\n  {name}: {json.dumps(text, ensure_ascii=False)}\n  submit: OK\n",
        lambda: f"de:\n  {name}: '{text}'\n  submit: OK\n",
        lambda: f"app.title=Demo\n{name}={text}\nlogin.submit=OK\n",
        lambda: f'/* a label */\n"{name}" = "{text}";\n',
        lambda: f'#: forms.py:12\nmsgid "{name}"\nmsgstr "{text}"\n',
        lambda: f'<resources>\n  <string name="{name}">{text}</string>\n</resources>\n',
        lambda: f"export default {{\n  login: {{\n    {flat}: '{text}',\n  }},\n}};\n",
        lambda: (
            f'<label for="{flat}">{text}</label>\n<input type="password" id="{flat}" placeholder="{text}">'
        ),
        lambda: f'msgid "Password:"\nmsgstr "{text}:"\n',
    )
    return seed.choice(forms)()


def _texts(seed: Random, size: int) -> Iterator[Trial]:
    redactor = Redactor()
    for _ in range(size):
        name = seed.choice(_TEXT_NAMES)
        text = _write_text(seed, name, _text(seed))
        yield Trial(f"under {name}: {text!r}", redactor.redact(text) == text)


def _ids(seed: Random, size: int) -> Iterator[Trial]:
    redactor = Redactor()
    for _ in range(size):
        name, length = seed.choice(_ID_NAMES), seed.choice((16, 24, 32, 40, 64))
        value = "".join(seed.choice("0123456789abcdef") for _ in range(length))
        if length == 32 and seed.random() < 0.5:
            value = f"{value[:8]}-{value[8:12]}-{value[12:16]}-{value[16:20]}-{value[20:]}"
        forms = (
            json.dumps({name: value, "n": 1}),
            f"{name}: {value}\n",
            f"{name}={value}\n",
            f'{name} = "{value}"\n',
        )
        text = seed.choice(forms)
        yield Trial(f"{name}, {length} characters: {text!r}", redactor.redact(text) == text)


ATTACKS: tuple[Attack, ...] = (
    Attack("sources", "nothing is masked in source code that holds no secret", _read_sources),
    Attack("texts", "labels and messages about passwords are left, in any language", _texts, 0.01),
    Attack("ids", "ids and hashes are left under names that do not say secret", _ids),
)
