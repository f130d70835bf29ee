"""Words that mark an error, a decision, a constraint, a goal or a next step, in the languages that people use.

A cue is only a hint: whatever looks for cues also has a source that needs no words, such as calls and results,
questions, task lists, or the end of the session.
"""

from __future__ import annotations

import re

_ERRORS = "error|exception|failed|failure|fatal|traceback|panic"
_DEFINES = "def|class|func|function|fn|struct|interface|enum|type|trait|const"

TELLING_WORDS = frozenset(f"{_ERRORS}|errors|fail|warning|denied|{_DEFINES}|export".split("|"))
"""Words of lines that define something or report an error."""
TELLING_END = re.compile(
    rf"{_ERRORS}|fail|errno|exit code|total|summary|result|complete|finished|done|[}}\])]\s*$",
    re.IGNORECASE,
)
"""What the end of an output contains if it says how things went: an error, a total, a closing brace."""


def _cue(latin: str, others: str) -> re.Pattern[str]:
    """Latin and Cyrillic cues match at the start of a word; those of scripts without spaces match anywhere."""
    return re.compile(rf"\b(?:{latin})|{others}", re.IGNORECASE)


DECISION = _cue(
    r"decided|decision|chose\b|choos|opt(?:ed|ing)? (?:for|to)|going with|go with|we(?:'ll| will) use|I(?:'ll| will) use|instead of"
    r"|rather than|switch(?:ed|ing)? to|root cause is|entschieden|entscheid|stattdessen"
    r"|anstatt|wir nehmen|décid|choisi|plutôt que|au lieu de|decidi|elegi|en lugar de|en vez de|optei|escolh"
    r"|em vez de|ho deciso|scelto|invece di|решил|решен|выбра|вместо|karar ver|yerine|zdecydow|zamiast",
    r"决定|選擇|选择|采用|採用|改用|決定|ことにし|代わりに|결정|선택|대신|قررت|اخترنا|बजाय|निर्णय",
)
RATIONALE = _cue(
    r"because|since\b|so that|in order to|due to|therefore|as it|weil|damit|wegen|parce que|afin de|car\b|porque|ya que|para que"
    r"|poiché|perché|потому|чтобы|так как|çünkü|ponieważ",
    r"因为|因為|为了|由于|ため|なので|から、|때문|위해|لأن|क्योंकि",
)
CONSTRAINT = _cue(
    r"must\b|never\b|always\b|do not\b|don't\b|cannot\b|can't\b|required?\b|only\b|at most|at least|no more than|limit"
    r"|forbidden|not allowed|should not|shouldn't|without breaking|backwards?[- ]compat|deadline|budget|muss|müssen|darf nicht"
    r"|niemals|immer\b|höchstens|mindestens|doit|jamais|toujours|interdit|au plus|debe|nunca|siempre|prohibid|como máximo"
    r"|deve\b|sempre\b|mai\b|vietato|долж|нельзя|никогда|всегда|не более|asla|her zaman|musi\b|nigdy|zawsze",
    r"必须|必須|不能|不要|不得|禁止|只能|务必|最多|至少|てはいけ|てください|のみ|以内|반드시|금지|하지 마|최대|يجب|لا تفعل|ज़रूरी|चाहिए",
)
GOAL = _cue(
    r"goal|objective|the task|we want|I want|(?<!I )need to|you want|asked to|success|acceptance|done when|should pass|so the plan"
    r"|ziel\b|aufgabe|objectif|tâche|objetivo|tarea|tarefa|obiettivo|цель|задач|hedef|cel\b",
    r"目标|目標|任务|任務|需要|目的|タスク|목표|작업|الهدف|लक्ष्य",
)
NEXT = _cue(
    r"next\b|todo|to do|remaining|still (?:need|have)|left to|then I|I(?:'ll| will)|let me|let's|now (?:I|let|we)|follow[- ]up"
    r"|als nächstes|noch offen|jetzt|ensuite|prochaine|reste à|siguiente|falta|ahora|próxim|a seguir|prossim|ora\b"
    r"|далее|следующ|осталось|теперь|sonra|şimdi|następn|teraz",
    r"接下来|下一步|然后|待办|还需|接下來|次に|残り|これから|다음|이제|남은|التالي|अगला|अब ",
)
INTENT = re.compile(rf"\b(?:I need to|I should|I’ll)\b|{NEXT.pattern}", re.IGNORECASE)
"""`NEXT`, and words that name a next step only if they are recent: earlier in a session they name a goal."""
TROUBLE = re.compile(
    rf"\b(?:{_ERRORS}|fails|denied|not found|cannot|can't|unable|undefined"
    r"|refused|timed? ?out|conflict|fehler|erreur|échec|falló|erro\b|errore|ошибк|hata\b)|Error\b|Exception\b|FAIL|错误|失败|錯誤|エラー|失敗|오류|실패|خطأ",
    re.IGNORECASE,
)
QUESTION = re.compile(r"[?？؟]\s*$")
BOX = re.compile(r"^\s*(?:[-*]\s*)?\[(?P<done>[ xX~-])\]\s+(?P<text>\S.*)$")
DEFINITION = re.compile(
    r"^\s*(?:\d+\s*[→|:]\s*)?(?:export\s+|pub(?:\(\w+\))?\s+|public\s+|private\s+|protected\s+|static\s+|default\s+|async\s+)*"
    rf"(?:{_DEFINES}|impl|module|var|let)\s+(?:\([^)]*\)\s*)?"
    r"(?P<name>[\w.$]+)"
)
