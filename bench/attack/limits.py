"""A provider error teaches a limit only if it is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bench.attack import Attack, Trial
from compact import CompactConfig, CompactManager
from compact.runtime.overflow import recognise

Item = dict[str, Any]

_WORDS = (
    "prompt is too long: {n} tokens > {limit} maximum",
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {n} tokens.",
    "The input token count ({n}) exceeds the maximum number of tokens allowed ({limit}).",
    "too many tokens: total number of tokens in the prompt cannot exceed {limit} - received {n}.",
    "the request exceeds the available context size: n_prompt_tokens {n}, n_ctx {limit}",
    "Requested token count exceeds the model's maximum context length of {limit} tokens. You requested a total of {n} tokens.",
    "Input too long: {n} tokens, limit {limit}",
    "inputs tokens + max_new_tokens must be <= {limit}. Given: {n} inputs tokens",
)
"""As providers say it."""
_CODES = (
    "context_length_exceeded",
    "ContextWindowExceededError",
    "exceed_context_size_error",
    "prompt_too_long",
    "request_too_large",
)
_COMPLAINTS = (
    "Invalid value: {quoted}. Supported values are text.",
    "messages[{k}].content: {quoted} is not valid",
    "Could not parse the arguments of tool call c{k}: {quoted}",
    "Unexpected content near {quoted}",
    "Validation failed for messages[{k}], value: {text}",
    "Bad request, content: {text}",
    "messages.{k}.content.0.text: {text} contains characters that are not allowed",
    "The tool result {quoted} was refused by the content check",
    "{quoted} could not be encoded",
)
"""Errors that have nothing to do with length, and quote what they were sent."""
_MARKS = (
    ('"', '"'),
    ("'", "'"),
    ("`", "`"),
    ("“", "”"),
    ("```\n", "\n```"),
    ('\\"', '\\"'),
    ("«", "»"),
    ("「", "」"),
)


def _words(seed: Random, count: int) -> str:
    return " ".join(f"word{seed.randrange(9999)}" for _ in range(count))


def _session(seed: Random, text: str = "") -> list[Item]:
    """A session of about 15,000 tokens, in which a tool returned `text`."""
    items: list[Item] = [{"role": "user", "content": "Read the pages."}]
    for number in range(10):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "web_fetch", "arguments": "{}"}}
        said = f"{_words(seed, 250)}\n{text}\n{_words(seed, 250)}" if number == 4 else _words(seed, 500)
        items += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": said},
            {"role": "assistant", "content": f"Page {number} is read."},
            {"role": "user", "content": f"Go on with {number}."},
        ]
    return items


class _Refused(Exception):
    """What an SDK raises: its text, and the body of the response."""

    def __init__(self, message: str, code: str | None = None, status: int = 400) -> None:
        self.body = {"error": {"message": message, "code": code, "type": "invalid_request_error"}}
        self.status_code = status
        super().__init__(f"Error code: {status} - {self.body}")


def _manager() -> CompactManager:
    return CompactManager(
        CompactConfig(model="gpt-4o", max_context_tokens=128_000, archive={"adapter": "memory"})
    )


def _call(
    made: CompactManager, session: str, items: list[Item], refuse: Callable[[int], Exception | None]
) -> bool:
    """Call a model that refuses what `refuse` gives an error for, by our count. Whether it answered in the end."""

    def model(messages: Any) -> Item:
        problem = refuse(made.estimate(messages).total)
        if problem is not None:
            raise problem
        return {"role": "assistant", "content": "ok"}

    try:
        made.call(session, items, model)
    except Exception:
        return False
    return True


def _refusing(
    limit: int, words: str, code: str | None, skew: float = 1.0
) -> Callable[[int], Exception | None]:
    """A provider with a limit, whose tokenizer counts `skew` times what ours does."""

    def refuse(tokens: int) -> Exception | None:
        counted = int(tokens * skew)
        return _Refused(words.format(n=counted, limit=limit), code) if counted > limit else None

    return refuse


def _raising(problem: Exception) -> Callable[[int], Exception | None]:
    return lambda _: problem


def _raising_once(problem: Exception) -> Callable[[int], Exception | None]:
    waiting = [problem]
    return lambda _: waiting.pop() if waiting else None


def _answering(_: int) -> None:
    return None


def real_overflows(seed: Random, size: int) -> Iterator[Trial]:
    """Refusals as providers word them, with true numbers: the session learns the limit, another one confirms it."""
    for n in range(max(4, size // 4)):
        limit = seed.randrange(8_000, 12_000)
        words, code = seed.choice(_WORDS), seed.choice((None, *_CODES))
        skew = seed.uniform(0.9, 1.25)
        made, refuse = _manager(), _refusing(limit, words, code, skew)
        what = f"{n}: {words[:50]!r}, code {code}, counted {skew:.2f} times"
        items = _session(seed)
        yield Trial(f"{what}: is survived", _call(made, "a", items, refuse))
        yield Trial(f"{what}: is learned for its session", made.models.window(None, "a").tokens == limit)
        yield Trial(f"{what}: is one session's", made.models.window(None, "b").tokens == 128_000)
        yield Trial(f"{what}: is survived again", _call(made, "b", _session(seed), refuse))
        yield Trial(f"{what}: two agree", made.models.window(None, "c").tokens == limit)
        made.close()


def echoed_text(seed: Random, size: int) -> Iterator[Trial]:
    """Other errors that quote what a tool wrote about context lengths, in any quotation marks, or in none."""
    for n in range(size):
        limit = seed.randrange(300, 9_000)
        said = seed.choice(_WORDS).format(n=seed.choice((limit * 3, 20_000, 25_000)), limit=limit)
        said = (
            seed.choice(
                (
                    "",
                    f"{seed.choice(_CODES)}: ",
                    "Error code: 400 - ",
                    '{"error": {"code": "context_length_exceeded"}} ',
                )
            )
            + said
        )
        items = _session(seed, said)
        opens, closes = seed.choice(_MARKS)
        quoted = f"{opens}{said if seed.random() < 0.7 else said + ' ' + _words(seed, 40)}{closes if seed.random() < 0.8 else ''}"
        text = seed.choice(_COMPLAINTS).format(quoted=quoted, text=said, k=seed.randrange(30))
        problem = _Refused(
            text, seed.choice((None, "invalid_value", "invalid_request")), seed.choice((400, 422))
        )
        found = recognise(problem, items)
        yield Trial(f"{n}: {text[:120]!r} taken for an overflow", found is None)
        if n % 10 == 0:
            made = _manager()
            _call(made, "a", items, _raising(problem))
            windows = {made.models.window(None, session).tokens for session in ("a", "b")}
            yield Trial(f"{n}: a window fell to {min(windows):,}", windows == {128_000})
            made.close()


def implausible_numbers(seed: Random, size: int) -> Iterator[Trial]:
    """Numbers that cannot be true of the request: another size, a limit below what was taken, floods of digits."""
    for n in range(max(4, size // 3)):
        made = _manager()
        items = _session(seed)
        words = seed.choice(_WORDS)
        numbers: dict[str, int | str]
        match seed.randrange(3):
            case 0:
                what, numbers = "a request of another size", {"n": seed.randrange(300, 3_000), "limit": 280}
            case 1:
                what, numbers = (
                    "a request far larger",
                    {"n": seed.randrange(10**6, 10**9), "limit": seed.randrange(300, 4_000)},
                )
            case _:
                digits = seed.choice("123456789") * seed.choice((5_000, 200_000))
                what, numbers = "a flood of digits", {"n": digits, "limit": seed.choice((digits, 4_100))}
        answered = _call(made, "a", items, _raising_once(_Refused(words.format(**numbers))))
        windows = {made.models.window(None, session).tokens for session in ("a", "b")}
        yield Trial(f"{n}: {what}, {words[:40]!r}: {min(windows):,}", windows == {128_000} or not answered)
        yield Trial(f"{n}: {what}: the error of the provider, or an answer", answered or windows == {128_000})
        made.close()


def foreign_sessions(seed: Random, size: int) -> Iterator[Trial]:
    """One session that is told a limit again and again moves no other; an answer above a limit removes it."""
    for n in range(max(4, size // 5)):
        made = _manager()
        limit = seed.randrange(8_000, 12_000)
        refuse = _refusing(limit, _WORDS[0], "context_length_exceeded")
        for again in range(3):
            _call(made, "victim", _session(seed, f"again {again}"), refuse)
        others = {made.models.window(None, f"other {k}").tokens for k in range(5)}
        yield Trial(f"{n}: others at {min(others):,}", others == {128_000})
        learned = made.models.learned
        learned.note_answer("gpt-4o", "victim", limit + 1, counted=limit + 1)
        yield Trial(f"{n}: disproved by an answer", made.models.window(None, "victim").tokens == 128_000)
        made.close()


def _narrowest(made: CompactManager, *sessions: str) -> int:
    return min(made.models.window(None, session).tokens for session in sessions)


def disproved_limits(seed: Random, size: int) -> Iterator[Trial]:
    """Limits below what the provider already answered, told to several sessions, by code and with counts that fit."""
    for n in range(max(4, size // 5)):
        made, items = _manager(), _session(seed)
        sessions = [f"told {n} {k}" for k in range(seed.randrange(2, 4))]
        for session in sessions if seed.random() < 0.5 else sessions[:1]:
            _call(made, session, items, _answering)
        tokens = made.estimate(items).total
        limit = seed.randrange(260, int(tokens * 0.7))
        words, code = seed.choice(_WORDS), seed.choice((None, *_CODES))
        for session in sessions:
            problem = _Refused(words.format(n=int(tokens * seed.uniform(0.9, 1.3)), limit=limit), code)
            _call(made, session, items, _raising_once(problem))
        least = _narrowest(made, "fresh", *sessions)
        yield Trial(f"{n}: {words[:40]!r}, code {code}, limit {limit:,}: {least:,}", least == 128_000)
        made.close()


def stopping_limits(seed: Random, size: int) -> Iterator[Trial]:
    """Limits too small to work in, or absurdly far below the window, told to many sessions: no other session notices."""
    for n in range(max(4, size // 5)):
        made, items = _manager(), _session(seed)
        tokens, limit = made.estimate(items).total, seed.randrange(256, 6_000)
        words, code = seed.choice(_WORDS), seed.choice((None, *_CODES))
        for told in range(seed.randrange(2, 5)):
            problem = _Refused(words.format(n=int(tokens * seed.uniform(0.9, 1.3)), limit=limit), code)
            _call(made, str(told), items, _raising_once(problem))
        what = f"{n}: {words[:40]!r}, code {code}, limit {limit:,}"
        yield Trial(f"{what}: another session is cut", _narrowest(made, "fresh") == 128_000)
        for session in ("0", "fresh"):
            greeting = [{"role": "user", "content": "hello"}]
            yield Trial(f"{what}: {session} is stopped", _call(made, session, greeting, _answering))
        made.close()


_SHORT = (
    "{code}: limit {limit} tokens",
    "{code}: {limit}",
    "context length exceeded: {limit}",
    "prompt too long: max {limit}",
    "too many tokens, limit {limit}",
    '{{"error": {{"code": "{code}", "message": "limit {limit}", "n_ctx": {limit}}}}}',
)
_AROUND = (
    "{said}",
    "{said}: invalid character in messages[{k}].content",
    "Content rejected: {said}",
    "Bad request: {said}",
    "Error code: {said}",
    "refused at {k}\n{said}",
    "{said} (request {k})",
)
_OTHER_CODES = (
    "content_rejected",
    "invalid_json",
    "moderation_blocked",
    "InvalidCharacter",
    "schema_mismatch",
)


def short_echoes(seed: Random, size: int) -> Iterator[Trial]:
    """A few words of a tool, repeated by an error in any surroundings, with a code of its own or none."""
    for n in range(size):
        limit = seed.randrange(4_100, 9_000)
        shown = seed.choice((str(limit), f"{limit:,}"))
        said = seed.choice(_SHORT).format(code=seed.choice(_CODES), limit=shown)
        items = _session(seed, said)
        text = seed.choice(_AROUND).format(said=said, k=seed.randrange(30))
        bare = seed.random() < 0.3
        problem: Exception = (
            ValueError(text) if bare else _Refused(text, seed.choice((None, "invalid_request")))
        )
        found = recognise(problem, items)
        taught = found is not None and (found.limit is not None or found.by_code)
        yield Trial(f"{n}: {text[:100]!r} teaches", not taught)
        code = seed.choice(_OTHER_CODES)
        yield Trial(f"{n}: {said!r} with the code {code}", recognise(_Refused(said, code), items) is None)
        if n % 10 == 0:
            made = _manager()
            for session in ("a", "b"):
                _call(made, session, items, _raising_once(problem))
            least = _narrowest(made, "a", "b", "c")
            yield Trial(f"{n}: {text[:60]!r}: a window fell to {least:,}", least == 128_000)
            made.close()


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "real",
        "A provider's own refusal is survived, learned for its session, and for the model when two agree.",
        real_overflows,
    ),
    Attack("echoes", "What an error quotes of the request is no overflow, and teaches nothing.", echoed_text),
    Attack("implausible", "Numbers that cannot be true of the request teach nothing.", implausible_numbers),
    Attack(
        "foreign", "One session's limit is no other's, and an answer above it removes it.", foreign_sessions
    ),
    Attack(
        "disproved",
        "A limit below what was already answered is not believed, however often it is told.",
        disproved_limits,
    ),
    Attack("stopping", "No limit that an error names stops a session or cuts a stranger's.", stopping_limits),
    Attack(
        "short", "A few repeated words teach no limit, and a code of its own wins over them.", short_echoes
    ),
)
