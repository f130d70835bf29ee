"""What may stand for history: good summaries of real sessions pass, bad ones never do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.llm import bad_summaries, good_summaries, messages_of, source_of

from compact.messages import Message, Text
from compact.summaries.checking.claims import SourceText, ids_in, numbers_in, paths_in
from compact.summaries.checking.verification import (
    Expected,
    Verdict,
    verify,
    without_reasoning,
)
from compact.summaries.chunks import conversation
from compact.tokens import Meter

COUNT = Meter("gpt-4o").count_text


def judged(text: str, entry: dict[str, Any], **more: Any) -> Verdict:
    expected = Expected(
        source=source_of(entry),
        limit=more.pop("limit", 600),
        count=COUNT,
        by_model=True,
        input_tokens=COUNT(source_of(entry).text),
        **more,
    )
    return verify(text, expected)


def test_good_summaries_pass() -> None:
    """Written by hand, of eleven real sessions, in different words and forms: at least 90% pass, as they are."""
    verdicts = [judged(entry["text"], entry) for entry in good_summaries()]
    assert len(verdicts) >= 30
    passed = [verdict for verdict in verdicts if verdict.defect is None]
    untouched = [verdict for verdict in passed if not verdict.struck]
    assert len(passed) >= 0.9 * len(verdicts), [v.why for v in verdicts if v.defect]
    assert len(untouched) >= 0.9 * len(verdicts), [v.struck for v in passed]


@pytest.mark.parametrize(
    "entry", bad_summaries(), ids=lambda entry: f"{entry['defect']}-{entry['text'][:20]!r}"
)
def test_a_bad_summary_never_passes(entry: dict[str, Any]) -> None:
    assert judged(entry["text"], entry).defect == entry["defect"]


def test_the_input_handed_back_never_passes() -> None:
    for entry in good_summaries():
        text = conversation(messages_of(entry))
        for part in (text, text[: len(text) // 2], text[len(text) // 3 :]):
            verdict = judged(part, entry, limit=1_000_000)
            assert verdict.defect in ("echo", "loop"), verdict


def test_a_changed_name_is_noticed() -> None:
    """Every path, id and number of the good summaries, changed a little: the sentence is struck or all is rejected."""
    caught = tried = 0
    for entry in good_summaries():
        text = entry["text"]
        for name in [*paths_in(text), *ids_in(text), *numbers_in(text)]:
            wrong = re.sub(r"\d", lambda digit: str((int(digit.group()) + 3) % 10), name)
            if wrong == name:
                stem, dot, ending = name.rpartition(".")
                wrong = f"{stem or name}_other{dot}{ending if stem else ''}"
            verdict = judged(text.replace(name, wrong), entry)
            tried += 1
            caught += verdict.defect is not None or any(wrong in sentence for sentence in verdict.struck)
    assert tried > 100
    assert caught >= 0.97 * tried, f"{caught} of {tried}"


def test_a_summary_over_its_limit_or_cut_off_there_never_passes() -> None:
    for entry in good_summaries():
        expected = Expected(
            source=source_of(entry),
            limit=COUNT(entry["text"]),
            count=COUNT,
            by_model=True,
        )
        assert verify(entry["text"], expected).defect is None
        assert verify(entry["text"], expected, cut_off=True).defect == "too_long"
        assert verify(f"{entry['text']} And so on, as before.", expected).defect == "too_long"


def test_only_the_sentence_that_invents_is_struck() -> None:
    entry = next(entry for entry in good_summaries() if entry["strategy"] == "task_state")
    text = f"{entry['text']}\nThe agent also changed lib/shipping/rates.py. The tone was friendly."
    verdict = judged(text, entry)
    assert verdict.defect is None
    assert verdict.struck == ("The agent also changed lib/shipping/rates.py.",)
    assert "The tone was friendly." in verdict.text
    assert "rates.py" not in verdict.text


@pytest.mark.parametrize(
    ("said", "invented"),
    [
        ("see src/app/main.py:12", []),
        ("see ./src/app/main.py", []),
        ("see /home/me/project/src/app/main.py", []),
        ("see src/app/other.py", ["src/app/other.py"]),
        ("see `util.py`", []),
        ("see `utils.py`", ["utils.py"]),
        ("read/write and try/except", []),
        ("about 12 files, 3 of 7 tests", []),
        ("12,345 rows", []),
        ("12,346 rows", ["12346"]),
        ("exit code 7", ["7"]),
        ("exit code 3", []),
        ("a score of 0.8534", []),
        ("a score of 0.8541", ["0.8541"]),
        ("commit 3fbcf56", []),
        ("commit 3fbcf57", ["3fbcf57"]),
        ("ticket ABC-123 in UTF-8 with SHA-256", []),
        ("ticket ABC-124", ["ABC-124"]),
        ("https://example.com/a/b?x", []),
        ("https://example.com/a/c", ["example.com/a/c"]),
        ("all of src/**/*.py and {a,b}.py", []),
        ("a 1000-line file, 5000ms", ["1000", "5000"]),
        ("Node.js and Next.js", []),
    ],
)
def test_what_counts_as_invented(said: str, invented: list[str]) -> None:
    source = SourceText(
        [
            "cd /home/me/project; opened src/app/main.py and util.py; 12345 rows; exit code 3; score 0.85342",
            "commit 3fbcf56aa0b13e1c; see ABC-123; https://example.com/a/b?x",
        ]
    )
    assert source.find_invented(said) == invented


def test_text_escaped_inside_json_counts_as_said() -> None:
    source = SourceText(['{"command": "cat <<EOF\\nsetup.cfg\\nEOF", "path": "C:\\\\work\\\\app.py"}'])
    assert source.find_invented("setup.cfg was shown, and C:\\work\\app.py") == []


@pytest.mark.parametrize(
    "said",
    [
        "Error handling was added in 3 files: all pass.",
        "Rate limiting was added to the API, and the timeout is 30 seconds.",
        "Timeouts are handled now. Connection errors are retried.",
        "The conversation was about tests that run against the staging server.",
        "I can't reproduce the bug yet, so I read the log next.",
        "Sorry state of the build: two tests fail.",
        "System: the agent works on Linux. You are now on branch main.",
        "The model was asked to assist with the tests; it cannot be reached at night.",
    ],
)
def test_a_summary_about_errors_is_no_error(said: str) -> None:
    expected = Expected(source=SourceText(["3 files, 30 seconds"]), limit=100, count=COUNT, by_model=True)
    verdict = verify(said, expected)
    assert (verdict.defect, verdict.struck) == (None, ())


def of_a_model(text: str) -> str | None:
    return verify(
        text, Expected(source=SourceText(["src/auth/login.py"]), limit=2000, count=COUNT, by_model=True)
    ).defect


@pytest.mark.parametrize(
    "said",
    [
        "Es tut mir leid, aber ich kann dir dabei nicht helfen.",
        "Tut mir leid, diese Anfrage kann ich nicht bearbeiten.",
        "Leider kann ich dieses Gespräch nicht zusammenfassen.",
        "Ich kann Ihnen bei dieser Anfrage nicht weiterhelfen, da sie gegen die Richtlinien verstößt.",
        "Als KI-Sprachmodell kann ich personenbezogene Daten nicht verarbeiten.",
        "Je suis désolé, mais je ne peux pas vous aider avec cette demande.",
        "Désolée, je ne peux pas résumer cette conversation.",
        "Je ne peux pas vous aider à ce sujet.",
        "Je ne suis pas en mesure de fournir un résumé de ce contenu.",
        "En tant que modèle de langage, je ne peux pas traiter ces données personnelles.",
        "Lo siento, pero no puedo ayudarte con eso.",
        "No puedo proporcionar un resumen de esta conversación porque contiene datos personales.",
        "Lamentablemente, no puedo resumir este contenido.",
        "Como modelo de lenguaje, no puedo procesar datos personales.",
        "很抱歉，我无法协助处理这个请求。",
        "对不起，我不能提供这段对话的摘要。",
        "抱歉，無法為您總結此內容。",
        "作为一个人工智能语言模型，我无法处理个人信息。",
        "我无法提供此内容的总结，因为它可能违反使用政策。",
        "申し訳ありませんが、そのリクエストにはお応えできません。",
        "申し訳ございませんが、この会話を要約することはできません。",
        "すみません、それについてはお手伝いできません。",
        "この内容にはお答えできません。",
    ],
)
def test_a_refusal_is_known_in_other_languages(said: str) -> None:
    assert of_a_model(said) == "refusal"


@pytest.mark.parametrize(
    "said",
    [
        "Ich kann den Fehler noch nicht reproduzieren, deshalb lese ich als Nächstes das Log und die Tests.",
        "Leider kann ich den Server nachts nicht erreichen; der Test bleibt offen, das Log wird gelesen.",
        "Als Nächstes: die Anmeldung kann abgelaufene Token nicht erkennen, das wird in login.py ergänzt.",
        "Je ne peux pas encore reproduire le bug, donc je lis le journal et je lance les tests ensuite.",
        "Malheureusement, le test échoue encore : je ne peux pas joindre le serveur de recette la nuit.",
        "Je suis passé aux tests du module de connexion, car je ne peux pas joindre le serveur la nuit.",
        "サーバーは期限切れのトークンに対応できません。次にログインの処理へ確認を追加し、テストを再実行する。",
        "No puedo reproducir el error todavía, así que leo el registro y ejecuto las pruebas después.",
        "Lo siguiente: el servidor no puede validar los tokens caducados; se corrige en login.py ahora.",
        "无法重现该错误，因此接下来阅读日志并再次运行测试，然后修复登录模块。",
        "我无法处理过期的令牌，所以在登录模块中添加检查，然后再次运行测试。",
        "为用户处理登录：服务器不能验证过期令牌，下一步是在 login.py 中添加检查并运行测试。",
        "次はログを読んでテストを再実行する。期限切れのトークンを検証できない問題はまだ残っている。",
        "申し込み画面の不具合を修正した。サーバーは夜間に接続できませんと表示されるので、次に調べる。",
    ],
)
def test_a_summary_in_another_language_that_tells_of_failures_is_no_refusal(said: str) -> None:
    assert of_a_model(said) is None


def test_a_long_summary_without_spaces_is_not_taken_for_a_short_text() -> None:
    """Signs count as words do: what opens with an apology and goes on for a page is about one."""
    told = "".join(
        f"第{n}步在模块{n}里读取了函数{n}，测试{n}失败后修复了第{n * 7}行的检查。" for n in range(40)
    )
    assert of_a_model(f"抱歉的提示：用户看到“无法登录”。{told}") is None


@pytest.mark.parametrize(
    "said",
    [
        "我将继续处理登录功能的下一个函数。" * 8,
        "次の関数のログイン処理を続けて確認します。" * 7,
        "接下来继续检查。" * 20,
        "ログイン処理を確認します。\n" * 4,
        "ผมจะตรวจสอบฟังก์ชันเข้าสู่ระบบถัดไปต่อไป" * 6,
        "## 目标\n修复登录。\n" + "用户要求修改 login.py 的检查，然后用户要求修改 login.py 的检查，" * 5,
    ],
)
def test_a_loop_is_noticed_in_text_without_spaces(said: str) -> None:
    assert of_a_model(said) == "loop"


@pytest.mark.parametrize(
    "said",
    [
        "".join(f"在 src/auth/module_{n}.py 中添加了单元测试以验证登录流程。\n" for n in range(12)),
        "".join(f"- src/auth/module_{n}.py のログイン処理に期限の確認を追加した。\n" for n in range(12)),
        "## 状态\n- 完成\n## 测试\n- 完成\n## 文档\n- 完成\n## 部署\n- 完成\n以上四项均已完成，接下来发布新版本。",
    ],
)
def test_a_list_in_text_without_spaces_is_no_loop(said: str) -> None:
    assert of_a_model(said) != "loop"


def test_thinking_in_front_of_an_answer_is_taken_off() -> None:
    assert without_reasoning("<think>hm</think>\n## Goals\nx") == "## Goals\nx"
    assert without_reasoning("<think>hm, never ends") == ""


@pytest.mark.parametrize(
    "line",
    ["## Goals", "### 1. Goals", "**Goals**", "**Goals:**", "Goals:", "2. **Goals**", "Ziele:", "目标："],
)
def test_headings_and_nothing_else_are_no_summary_in_any_form(line: str) -> None:
    entry = good_summaries()[0]
    assert judged(f"{line}\n\n{line.replace('Goals', 'Next steps')}\nNone.", entry).defect == "empty"


@pytest.mark.parametrize(
    "line",
    [
        "## Yusuf Gonzalez wants to return every item of the order except the tablet",
        "**The identity of Yusuf Gonzalez is verified, the order is not known yet.**",
        "# Found yusuf_gonzalez_8900",
    ],
)
def test_a_line_that_says_something_is_no_heading(line: str) -> None:
    entry = good_summaries()[0]
    assert judged(f"{line}\nHe waits for the refund of the order.", entry).defect is None
    wrong = line.replace("Yusuf Gonzalez", "zip 77777").replace("_8900", "_8901")
    verdict = judged(f"{wrong}\nHe waits for the refund of the order.", entry)
    assert verdict.defect == "invented", "and what it names is checked"


def test_the_previous_summary_word_for_word_is_no_new_one() -> None:
    entry = good_summaries()[0]
    assert judged(entry["text"], entry, previous=entry["text"]).defect == "unchanged"


@pytest.mark.parametrize("by_model", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "<summary></summary>",
        "<SUMMARY>\n</SUMMARY>",
        "<summary>\n## Session Intent\n</summary>",
        "<state_snapshot><overall_goal></overall_goal><key_knowledge /></state_snapshot>",
        "<summary>...</summary>",
    ],
)
def test_markup_without_words_is_empty(text: str, by_model: bool) -> None:
    expected = Expected(source=SourceText(["a b"]), limit=600, count=COUNT, by_model=by_model)
    assert verify(text, expected).defect == "empty"
    words = text.replace("</", "The parser of dates was fixed and tested.</", 1)
    assert verify(words, expected).defect is None


@pytest.mark.parametrize(
    ("text", "input_tokens", "defect"),
    [
        ("The agent fixed the parser of dates.", 3_900, None),
        ("The agent fixed the parser of dates.", 40_000, "empty"),
        ("Done.", 700, "empty"),
        ("Here it is.", 3_900, "empty"),
        ("Sure, here is the summary:", 3_900, "empty"),
        ("I cannot help you with that.", 3_900, "refusal"),
        ("<think>The agent fixed the parser of dates.</think>", 3_900, "reasoning_only"),
    ],
)
def test_a_sentence_is_a_summary_of_a_short_input(text: str, input_tokens: int, defect: str | None) -> None:
    source = SourceText(["Fix the parser of dates."])
    expected = Expected(source=source, limit=600, count=COUNT, by_model=True, input_tokens=input_tokens)
    assert verify(text, expected).defect == defect


def test_a_summary_may_repeat_the_one_before_it() -> None:
    """Bringing a summary up to date keeps most of its words; that is no echo."""
    entry = good_summaries()[8]
    source = SourceText.of([*messages_of(entry), Message("assistant", (Text(entry["text"]),))])
    expected = Expected(
        source=source,
        limit=600,
        count=COUNT,
        by_model=True,
        previous=entry["text"],
    )
    assert verify(f"{entry['text']}\nThe agent goes on.", expected).defect is None
