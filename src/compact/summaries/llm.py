"""Summaries by a model behind any OpenAI-compatible endpoint.

The conversation goes in as data in one user message: no chat that could be continued, no tools that could be called. What
is longer than the model's own window goes in piece by piece, each updating the summary of the pieces before it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from compact.errors import CompactError, MissingExtra, says_overflow
from compact.summaries import strategies, templates
from compact.summaries.checking.verification import without_reasoning
from compact.summaries.chunks import chunks, defused
from compact.summaries.request import Reply, SummaryRequest
from compact.summaries.templates import Prompt

KEY_VARIABLES = ("COMPACT_SUMMARY_API_KEY", "OPENAI_API_KEY")
_NO_KEY = "none"
"""What an endpoint of one's own gets when there is no key: the client insists on one."""
_ASKED_SHARE = 7 / 8
"""The model is asked for a little less than there is room for: code adds the facts that it forgot."""
_WINDOW_MARGIN = 0.85
"""Share of the window that is used: the model's tokenizer is not the one that counts here."""
_THINKING_TOKENS = 256
_LEAST_CHUNK = 200
_OVERFLOWS = 3
_LIMIT = re.compile(
    r"(?:n_ctx\D{1,6}|context (?:length|window|size)\D{1,24}|maximum\D{1,40}|limit\D{1,16})(\d{3,8})"
)
_OPTIONAL = ("seed", "temperature", "max_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A model that writes summaries, and how it is asked."""

    model: str
    base_url: str | None
    window: int
    prompt: Prompt | None = None
    """A prompt of the host's own; None: the strategy's."""
    summary_tag: str = "summary"
    seed: int | None = 42
    temperature: float = 0
    timeout_s: float = 60


def why_unavailable(base_url: str | None) -> str:
    """Why a model cannot be asked: the extra is missing, or there is neither an endpoint nor a key. Empty: it can."""
    if find_spec("openai") is None:
        return str(MissingExtra.named("llm", "a summary by a model"))
    if base_url is None and not os.environ.get("OPENAI_BASE_URL") and _api_key() == _NO_KEY:
        return f"there is no summary.base_url and no key in {' or '.join(KEY_VARIABLES)}"
    return ""


async def summarize(request: SummaryRequest, endpoint: Endpoint, count: Callable[[str], int]) -> Reply:
    """The model's reply to a request. Raises what the client raises; nothing is retried but a request too long."""
    import openai

    window = endpoint.window
    async with openai.AsyncOpenAI(
        api_key=_api_key(), base_url=endpoint.base_url, timeout=endpoint.timeout_s, max_retries=0
    ) as client:
        for left in reversed(range(_OVERFLOWS)):
            try:
                return await _rolled(request, endpoint, count, window, client)
            except openai.BadRequestError as problem:
                if not left or not says_overflow(str(problem)):
                    raise
                named = _LIMIT.search(str(problem))
                window = min(window // 2, int(named.group(1)) if named else window)
    raise AssertionError("unreachable")


async def _rolled(
    request: SummaryRequest, endpoint: Endpoint, count: Callable[[str], int], window: int, client: Any
) -> Reply:
    """The last reply of a row of requests, each of which takes the summary of the pieces before it along."""
    asked = max(16, int(request.max_tokens * _ASKED_SHARE))
    output = min(_output_tokens(request.max_tokens), max(64, window // 3))
    system, _ = _system_prompt(request, endpoint, asked, updating=True)
    taken = output + count(system) + max(count(request.previous), request.max_tokens)
    room = max(_LEAST_CHUNK, int(window * _WINDOW_MARGIN) - taken)
    previous = request.previous
    pieces = chunks(request.messages, request.dialect, room, count, request.numbered)
    for place, piece in enumerate(pieces):
        system, sections = _system_prompt(request, endpoint, asked, updating=bool(previous))
        reply = await _one(client, endpoint, system, _data(piece, previous), output, sections)
        text = without_reasoning(reply.text)
        if place == len(pieces) - 1 or reply.refused or reply.cut_off or not text:
            return reply
        previous = text
    raise AssertionError("unreachable")


async def _one(
    client: Any, endpoint: Endpoint, system: str, data: str, output: int, sections: tuple[str, ...] | None
) -> Reply:
    wanted: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": data}],
        "temperature": endpoint.temperature,
        "max_tokens": output,
    }
    if endpoint.seed is not None:
        wanted["seed"] = endpoint.seed
    async with asyncio.timeout(endpoint.timeout_s):
        return _reply(await _created(client, wanted), endpoint.summary_tag, sections)


async def _created(client: Any, wanted: dict[str, Any]) -> Any:
    """The completion. Some models refuse a setting that others need: it is then left out, or called otherwise."""
    import openai

    for _ in _OPTIONAL:
        try:
            return await client.chat.completions.create(**wanted)
        except openai.BadRequestError as problem:
            refused = _refused_setting(str(problem), wanted)
            if refused is None:
                raise
            value = wanted.pop(refused)
            if refused == "max_tokens":
                wanted["max_completion_tokens"] = value
    return await client.chat.completions.create(**wanted)


def _refused_setting(problem: str, wanted: dict[str, Any]) -> str | None:
    if not re.search(
        r"unsupported|not support|unknown|unrecognized|not permitted|does not allow", problem, re.IGNORECASE
    ):
        return None
    return next((name for name in _OPTIONAL if name in wanted and f"'{name}'" in problem), None)


def _reply(completion: Any, tag: str, sections: tuple[str, ...] | None) -> Reply:
    """The reply in a completion. A proxy's page comes as plain text; an error with status 200 has no choices."""
    if isinstance(completion, str):
        return Reply(completion, sections)
    choices = getattr(completion, "choices", None)
    if not choices:
        detail = getattr(completion, "error", None) or "no choices"
        raise CompactError(f"the summarizer's endpoint gave no reply: {str(detail)[:300]}")
    choice = choices[0]
    message = choice.message
    refusal = getattr(message, "refusal", None)
    content = _text_of(message.content)
    if message.tool_calls and not content:
        raise CompactError("the summarizer called a tool instead of writing; it was given none")
    thought = getattr(message, "reasoning_content", None)
    text = content or refusal or (f"<think>{thought}</think>" if thought else "")
    return Reply(
        inside_tag(text, tag),
        sections,
        cut_off=choice.finish_reason == "length",
        refused=bool(refusal) or choice.finish_reason == "content_filter",
    )


def _text_of(content: Any) -> str:
    """What was written. Some servers answer in parts; those that are no text, such as thinking, are left out."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def inside_tag(text: str, tag: str) -> str:
    """What stands between the tags; without them, the whole text."""
    answer = without_reasoning(text)
    found = re.findall(rf"<{re.escape(tag)}>(.*?)(?:</{re.escape(tag)}>|\Z)", answer, re.DOTALL)
    return str(found[-1]).strip() if found else text  # what comes before the last is a draft


def _system_prompt(
    request: SummaryRequest, endpoint: Endpoint, max_tokens: int, *, updating: bool
) -> tuple[str, tuple[str, ...] | None]:
    """The instructions, and the headings that they ask for."""
    strategy = strategies.get(request.strategy)
    prompt = endpoint.prompt or templates.load(templates.UPDATE if updating else templates.SUMMARIZE)
    text = prompt.filled(templates.values_for(strategy, max_tokens, endpoint.summary_tag))
    return text, strategy.required if prompt.asks_for_sections else ()


def _data(piece: str, previous: str) -> str:
    before = f"<previous-summary>\n{defused(previous)}\n</previous-summary>\n\n" if previous else ""
    return f"{before}<conversation>\n{piece}\n</conversation>\n\nWrite the summary now."


def _output_tokens(max_tokens: int) -> int:
    """What the model may write in all: thinking and tags are not the summary, and tokenizers differ."""
    return 2 * max_tokens + _THINKING_TOKENS


def _api_key() -> str:
    return next((key for name in KEY_VARIABLES if (key := os.environ.get(name))), _NO_KEY)
