"""Where passwords are shown: answers of programs, files of logins, commands, forms and tables."""

from __future__ import annotations

import base64
import json
import shlex
from random import Random
from urllib.parse import quote

import yaml

from bench.attack.surroundings import HOSTS, Place, Written, env_name, user_name

_HEADERS = (
    "password",
    "token",
    "secret",
    "api key",
    "pwd",
    "passwd",
    "access token",
    "Password",
    "API Key",
    "Secret",
)


def _secret_manifest(seed: Random, _name: str, password: str) -> Written:
    encoded = base64.b64encode(password.encode()).decode()
    key = seed.choice(
        ("value", "db", "config", "admin-user", "connection", "tls.key", "password", "username")
    )
    field, written = seed.choice((("data", encoded), ("stringData", password)))
    manifest = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app", "namespace": "prod"}, "type": "Opaque",
        field: {"first": encoded[::-1] if field == "data" else "x", key: written},
    }  # fmt: skip
    order = list(manifest)
    seed.shuffle(order)
    manifest = {part: manifest[part] for part in order}
    kind = seed.randrange(4)
    if kind == 0:
        return json.dumps(manifest, indent=4), (json.dumps(written)[1:-1],)
    if kind == 1:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest]}), (
            json.dumps(written)[1:-1],
        )
    text = yaml.safe_dump(manifest, sort_keys=False, width=10_000)
    plain = yaml.safe_dump(written, width=10_000).removesuffix("...\n").strip().strip("'\"")
    other = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "data": {"level": "info"}})
    return (f"{other}---\n{text}" if kind == 2 else text), (plain,)


def _terraform(seed: Random, name: str, password: str) -> Written:
    outputs = {
        "endpoint": {"sensitive": False, "type": "string", "value": "https://api.internal"},
        name: {"sensitive": True, "type": "string", "value": password},
    }
    if seed.random() < 0.3:
        outputs = {
            "admin": {"sensitive": True, "type": ["object", {}], "value": {"login": "root", "what": password}}
        }
    return json.dumps(outputs, indent=2), (json.dumps(password)[1:-1],)


def _container(seed: Random, name: str, password: str) -> Written:
    pair = f"{env_name(name)}={password}"
    kind = seed.randrange(3)
    if kind == 0:
        found = [{"Id": "4f2a", "Config": {"Env": ["PATH=/usr/bin", pair, "LANG=C.UTF-8"], "Cmd": ["run"]}}]
        return json.dumps(found, indent=4), (json.dumps(password)[1:-1],)
    environment: object = [pair, "TZ=UTC"] if kind == 1 else {env_name(name): password, "TZ": "UTC"}
    services = {"services": {"web": {"image": "app:1", "environment": environment}}}
    written = yaml.safe_dump(password, width=10_000).removesuffix("...\n").strip().strip("'\"")
    return yaml.safe_dump(services, sort_keys=False, width=10_000), (
        written if kind == 2 else password.replace("'", "''"),
    )


def _cloud(seed: Random, _name: str, password: str) -> Written:
    nested = json.dumps({"username": user_name(seed), "password": password})
    answers: tuple[object, ...] = (
        {"ARN": "arn:aws:secretsmanager:eu-west-1:1:secret:app-x", "Name": "app", "SecretString": nested},
        {"ARN": "arn:aws:secretsmanager:eu-west-1:1:secret:app-x", "Name": "app", "SecretString": password},
        {"AccessKey": {"UserName": "bob", "Status": "Active", "SecretAccessKey": password}},
        {
            "appId": "11111111-2222-3333-4444-555555555555",
            "displayName": "app",
            "password": password,
            "tenant": "t",
        },
        {"id": "https://kv.vault.azure.net/secrets/db", "name": "db-password", "value": password},
        {"Parameter": {"Name": "/app/db/password", "Type": "SecureString", "Value": password, "Version": 1}},
    )
    answer = seed.choice(answers)
    written = json.dumps(password)[1:-1]
    return json.dumps(answer, indent=seed.choice((None, 4))), (
        json.dumps(written)[1:-1] if nested in str(answer) else written,
    )


def _login_file(seed: Random, _name: str, password: str) -> Written:
    host, user = seed.choice(HOSTS), user_name(seed)
    kind = seed.randrange(7)
    if kind == 0:
        return f"machine {host}\nlogin {user}\npassword {password}\n", (password,)
    if kind == 1:
        return f"machine {host} login {user} password {password}\n", (password,)
    if kind == 2:
        written = password.replace("\\", "\\\\").replace(":", "\\:")
        return (
            f"{host}:{seed.choice(('5432', '*', '6432'))}:{seed.choice(('app', '*'))}:{user}:{written}\n",
            (written,),
        )
    if kind == 3:
        return f"[client]\nuser={user}\npassword={_cnf(password)}\nhost={host}\n", (password,)
    if kind == 4:
        return f"//registry.npmjs.org/:_authToken={password}\nemail=a@b.example\n", (password,)
    if kind == 5:
        return f"[pypi]\nusername = __token__\npassword = {password}\n", (password,)
    written = quote(password, safe="")
    return f"https://{user}:{written}@{host}\n", (written,)


def _cnf(password: str) -> str:
    return f'"{password}"' if "#" in password and '"' not in password else password


def _command(seed: Random, name: str, password: str) -> Written:
    host, user, shell = seed.choice(HOSTS), user_name(seed), shlex.quote(password)
    pair = shlex.quote(f"{user}:{password}")
    commands = (
        f"echo {pair} | chpasswd",
        f"echo {pair} | sudo chpasswd -e",
        f"htpasswd -cb /etc/nginx/.htpasswd {user} {shell}",
        f"htpasswd -bB users {user} {shell} && reload",
        f"curl -s -u {pair} https://{host}/v1",
        f"curl --user {pair} -X POST https://{host}/v1",
        f"wget --user={user} --password={shell} https://{host}/f",
        f"sshpass -p {shell} ssh {user}@{host} uptime",
        f"mysql -h {host} -u {user} -p{shell} app -e 'select 1'",
        f"mysqldump -u{user} --password={shell} app > dump.sql",
        f"PGPASSWORD={shell} psql -h {host} -U {user} -c 'select 1'",
        f"MYSQL_PWD={shell} mysql -u {user}",
        f"redis-cli -h {host} -a {shell} ping",
        f"openssl rsa -in key.pem -passin pass:{shell} -out out.pem",
        f"docker login -u {user} -p {shell} {host}",
        f"export {env_name(name)}={shell} && ./run",
        f"{env_name(name)}={shell} ./run --fast",
        f"set -x {env_name(name)} {shell}",
        f"set -gx {env_name(name)} {shell}; and run",
        f"kubectl create secret generic db --from-literal={name}={shell}",
        f"az login --service-principal -u app -p {shell} --tenant t",
        f"ldapsearch -x -D cn=admin -w {shell} -b dc=x",
        f"useradd -m -p {shell} {user}",
        f"vault kv put secret/db {name}={shell}",
        f"helm upgrade app . --set {name}={shell}",
        f"gh secret set {env_name(name)} --body {shell}",
    )
    return seed.choice(("{}", "$ {}", "Running: {}\n", "  - run: {}")).format(seed.choice(commands)), _pieces(
        shell
    )


def _pieces(shell: str) -> tuple[str, ...]:
    """The parts of a quoted word that are written in a row."""
    return tuple(piece for piece in shell.strip("'").split("'\"'\"'") if len(piece) >= 5)


def _powershell(seed: Random, name: str, password: str) -> Written:
    quoted = "'" + password.replace("'", "''") + "'"
    lines = (
        f"$env:{env_name(name)} = {quoted}",
        f"$secure = ConvertTo-SecureString {quoted} -AsPlainText -Force",
        f"$secure = ConvertTo-SecureString -String {quoted} -AsPlainText -Force",
        f"$cred = New-Object PSCredential('{user_name(seed)}', (ConvertTo-SecureString {quoted} -AsPlainText -Force))",
        f"Connect-Thing -User {user_name(seed)} -Password {quoted}",
        f"[Environment]::SetEnvironmentVariable('{env_name(name)}', {quoted}, 'User')",
        f"$password = {quoted}",
    )
    return seed.choice(lines), tuple(piece for piece in quoted.strip("'").split("''") if len(piece) >= 5)


def _windows(seed: Random, name: str, password: str) -> Written:
    lines = (
        f"set {env_name(name)}={password}",
        f'set "{env_name(name)}={password}"',
        f"setx {env_name(name)} {password}" if '"' in password else f'setx {env_name(name)} "{password}"',
        f"net use Z: \\\\nas\\share /user:bob {password}",
        f"cmdkey /add:host /user:bob /pass:{password}",
    )
    return seed.choice(lines), (password,)


def _build(seed: Random, name: str, password: str) -> Written:
    shell = shlex.quote(password)
    key = env_name(name)
    lines = (
        f"FROM alpine\nENV {key}={shell}\nRUN make\n",
        f"FROM alpine\nENV {key} {password}\nRUN make\n",
        f"FROM alpine\nARG {key}={shell}\nRUN make\n",
        f"export {key} := {password}\n\nall:\n\tmake run\n",
        f"{key} ?= {password}\n\nall:\n\tmake run\n",
        f"{key} = {password}\nrun:\n\t./run\n",
    )
    return seed.choice(lines), (password, *_pieces(shell))[:1] if shell == password else _pieces(shell) or (
        shell,
    )


def _settings(seed: Random, name: str, password: str) -> Written:
    basic = json.dumps(password)
    markup = password.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    attribute = markup.replace('"', "&quot;")
    tag = name.replace(".", "-")
    escaped = password.replace("\\", "\\\\")
    choices: tuple[tuple[str, str], ...] = (
        (f'[db]\nhost = "x"\n{json.dumps(name) if "." in name else name} = {basic}\nport = 1\n', basic[1:-1]),
        (f"[db]\nhost=x\n{name}={password}\nport=1\n", password),
        (f"[db]\n{name} = {password}\n", password),
        (f"app.name=x\n{name}={escaped}\nserver.port=8080\n", escaped),
        (f"<config>\n  <host>x</host>\n  <{tag}>{markup}</{tag}>\n</config>", markup),
        (f'<add key="{name}" value="{attribute}"/>', attribute),
        (f'<server host="x" {tag}="{attribute}" port="1"/>', attribute),
        (f'resource "db" "main" {{\n  size = 1\n  {tag} = {basic}\n}}\n', basic[1:-1]),
        (f"{tag} = {basic}\n", basic[1:-1]),
        (f'variable "{tag}" {{\n  default = {basic}\n}}\n', basic[1:-1]),
    )
    text, written = seed.choice(choices)
    return text, (written,)


def _header(seed: Random, _name: str, password: str) -> Written:
    basic = base64.b64encode(f"{user_name(seed)}:{password}".encode()).decode()
    plain = "".join(char for char in password if char.isalnum() or char in "-_") + "9Zq7xK2vB4"
    choices = (
        ("Authorization: Basic " + basic, basic),
        ("Proxy-Authorization: Basic " + basic, basic),
        (f'curl -H "Authorization: Bearer {plain}" https://x.example', plain),
        (f"-H 'X-Api-Key: {plain}'", plain),
        (f"Cookie: theme=dark; session={plain}; lang=en", plain),
        (f"Set-Cookie: sid={plain}; Path=/; HttpOnly", plain),
        (f"X-Auth-Token: {plain}", plain),
        (json.dumps({"headers": {"Authorization": f"Basic {basic}"}}), basic),
        (f"headers={{'Authorization': 'Bearer {plain}'}}", plain),
    )
    text, written = seed.choice(choices)
    return text, (written,)


def _browser(seed: Random, _name: str, password: str) -> Written:
    field = seed.choice(("password", "passwd", "user_password", "login-password", "current-password", "pwd"))
    js, python = json.dumps(password), repr(password)
    selector = seed.choice(
        (f"#{field}", f"input[name={field}]", 'input[type="password"]', f"[name='{field}']")
    )
    css = json.dumps(selector)
    choices = (
        (f"await page.fill({css}, {js});", js[1:-1]),
        (f"page.fill({css}, {js})", js[1:-1]),
        (f"await page.type({css}, {js}, {{delay: 50}});", js[1:-1]),
        (f"await page.locator({css}).fill({js});", js[1:-1]),
        (f"page.get_by_label('Password').fill({python})", python[1:-1]),
        (f'driver.find_element(By.ID, "{field}").send_keys({python})', python[1:-1]),
        (f'driver.find_element(By.NAME, "{field}").send_keys({js})', js[1:-1]),
        (json.dumps({"selector": selector, "text": password}), js[1:-1]),
        (json.dumps({"element": "Password field", "ref": "e12", "text": password, "submit": True}), js[1:-1]),
        (json.dumps({"action": "fill", "selector": selector, "value": password}), js[1:-1]),
        (json.dumps({"fields": [{"name": "Password", "type": "textbox", "ref": "e4", "value": password}]}), js[1:-1]),
        (f"POST /login username=bob&{field}={quote(password, safe='')}", quote(password, safe="")),
        (f"form data: {{'user': 'bob', '{field}': {python}}}", python[1:-1]),
        (f'<input type="password" name="{field}" value="{password.replace("&", "&amp;").replace(chr(34), "&quot;")}">',
         password.replace("&", "&amp;").replace(chr(34), "&quot;")),
    )  # fmt: skip
    text, written = seed.choice(choices)
    return text, (written,)


def _table(seed: Random, _name: str, password: str) -> Written:
    header = seed.choice(_HEADERS)
    others = seed.sample(("id", "user", "host", "created", "role", "email"), seed.randint(1, 3))
    columns = [*others]
    columns.insert(seed.randint(0, len(columns)), header)
    kind = seed.randrange(7)
    written = password
    rows = []
    for number in range(seed.randint(1, 5)):
        row = [_cell(seed, column, number) for column in columns]
        row[columns.index(header)] = seed.choice(("n/a", "Qm7-xw2Lp9z"))
        rows.append(row)
    place = columns.index(header)
    if kind == 0:  # Markdown
        written = password.replace("|", "\\|")
    elif kind in (1, 2, 3) and "|" in password:
        written = password.replace("|", "+")
    elif kind == 4:
        written = '"' + password.replace('"', '""') + '"' if set(password) & set(',"\n') else password
    elif kind == 6:
        written = password.replace("&", "&amp;").replace("<", "&lt;")
    rows[seed.randrange(len(rows))][place] = written
    return _draw_table(kind, columns, rows), (written.strip('"'),)


def _cell(seed: Random, column: str, number: int) -> str:
    values = {
        "id": str(number + 1),
        "user": user_name(seed),
        "host": seed.choice(HOSTS),
        "created": "2026-01-02",
        "role": "admin",
    }
    return values.get(column, f"{user_name(seed)}@example.org")


def _draw_table(kind: int, columns: list[str], rows: list[list[str]]) -> str:
    if kind == 0:
        ruled = [columns, ["---"] * len(columns), *rows]
        return "Accounts:\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in ruled) + "\n"
    if kind == 4:
        return "\n".join(",".join(line) for line in [columns, *rows]) + "\n"
    if kind == 5:
        return "\n".join("\t".join(line) for line in [columns, *rows]) + "\n"
    if kind == 6:
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "".join("<tr>" + "".join(f"<td>{value}</td>" for value in row) + "</tr>\n" for row in rows)
        return f"<table>\n<tr>{head}</tr>\n{body}</table>"
    widths = [max(len(line[at]) for line in [columns, *rows]) for at in range(len(columns))]
    padded = [
        [value.ljust(width) for value, width in zip(line, widths, strict=True)] for line in [columns, *rows]
    ]
    if kind == 3:  # column -t
        return (
            "\n".join("  ".join(line).rstrip() for line in padded)
            .replace("I Key", "I-Key")
            .replace("s token", "s-token")
            + "\n"
        )
    rule = "+".join("-" * (width + 2) for width in widths)
    if kind == 1:  # psql
        lines = [" " + " | ".join(line) for line in padded]
        return "\n".join([lines[0], rule, *lines[1:], f"({len(rows)} rows)"]) + "\n"
    lines = ["| " + " | ".join(line) + " |" for line in padded]
    return "\n".join([f"+{rule}+", lines[0], f"+{rule}+", *lines[1:], f"+{rule}+"]) + "\n"


DAILY = (
    Place("terraform", "Terraform's outputs", _terraform),
    Place("secret-manifest", "a manifest of a Kubernetes Secret", _secret_manifest),
    Place("container", "a container's environment", _container),
    Place("cloud", "the answer of a cloud's command", _cloud),
    Place("login-file", "a file of logins", _login_file),
    Place("command", "a command line", _command),
    Place("powershell", "PowerShell", _powershell),
    Place("windows", "a Windows command", _windows),
    Place("build", "a Dockerfile or a Makefile", _build),
    Place("settings", "TOML, INI, properties, XML or HCL", _settings),
    Place("header", "an HTTP header", _header),
    Place("browser", "a browser's form", _browser),
    Place("table", "a table with a column for it", _table),
)
