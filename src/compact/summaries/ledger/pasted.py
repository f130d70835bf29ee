"""What a person pasted into a message: code, logs, diffs, quotations, what others wrote. Pure, in linear time.

Pasted text is data. A line in it that reads like an order is not the person's order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compact.summaries.ledger.typed import TAKEN_OUT

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
_ROLE = re.compile(
    r"^[\W_]{0,4}(?:user|human|assistant|system|developer|ai|bot|admin|agent|tool|model|customer|operator|observation|claude|chatgpt|gpt|copilot)"
    r"(?:[ \t]?\([^)\n]{0,30}\))?[*_`]{0,3}[ \t]?[:：>][*_`]{0,3}(?:\s|$)",
    re.IGNORECASE,
)
_LOG = re.compile(
    r"^[ \t]*(?:"
    r"[\[(]?\d{4}-\d\d-\d\d[T \]]|[\[(]?\d\d:\d\d:\d\d|\d{2}/\d{2}/\d{2,4}[ ,]|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]{1,2}\d{1,2} \d\d:\d\d"
    r"|\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE)\]?[ \t:|]|[EWI]/\w|\[[\w.:/ -]{1,40}\] ?\S{0,30}:|npm (?:ERR|WARN|notice)"
    r"|\S{1,120}\.\w{1,5}:\d{1,6}(?::\d{1,5})?:|Error: |at [\w$.<>/\\ ]{1,120}\(|at [\w$.]{1,80}:\d|File \"|Traceback \(most|Caused by:|\.\.\. \d+ more|\w[\w.]{0,80}(?:Error|Exception|Warning): "
    r"|thread '|goroutine \d|panic:|fatal:|error(?:\[\w+\])?:|warning:|remote:|hint:|On branch |Author: |Date: {1,3}|commit [0-9a-f]{7,40}"
    r"|={3}|-{3} (?:FAIL|PASS|SKIP)|ok {1,3}\t|FAIL\b|PASS(?:ED)?\b|\$ |% |❯ |➜ |>>> |\.\.\. |PS [A-Z]:\\|[\w.-]{1,40}@[\w.-]{1,40}[:~ ][^\n]{0,60}[$#%] "
    r"|[⏺⎿│├└┌┐┘╭╰─━═▶✓✗✔✘]|\d{1,6}[ \t]*[|→│]|[{}\[\]();,]+[ \t]*$|</?\w[^>\n]{0,200}>[ \t]*$|diff --git|index [0-9a-f]{7}|@@ |\+\+\+ |--- [ab]/|[+-](?:[\t{}]| {2,})"
    r"|#include|import [\w.{*]|from [\w.]{1,60} import |package [\w.]{1,60};?$|(?:def|class|func|fn|function|const|let|var|public|private|protected|static|return|if|for|while|switch|try|catch|elif|else if)\b[^\n]{0,200}[;:{(]$"
    r"|\"?[\w.-]{1,40}\"?: ?[\[{]$|\"[\w.-]{1,40}\": |[\w.-]{1,60}=\S{0,200}$|[a-z_]{1,20}: '|\|[^\n]{0,300}\|[ \t]*$|//|/\*|\*/|#!|<!--|::"
    r")"
)
_SOURCE = (
    r"logs?|output|console|terminal|stack ?trace|traceback|trace|error(?: message)?|message|page|web ?page|website|site|article|docs?|documentation"
    r"|readme|wiki|ticket|issue|e-?mail|mail|letter|note|feedback|review|comments?|response|reply|answer|result|results|transcript|chat|conversation"
    r"|post|thread|tweet|paste|file|diff|patch|snippet|code|query|tool|bot|ci|build|tests?|server|report|quote|text|template|prompt|banner|header"
    r"|seite|meldung|ausgabe|antwort|mail|nachricht|protokoll|journal|sortie|réponse|courriel|registro|salida|respuesta|correo|página|mensaje|risposta|pagina|saída|resposta"
)
_ANNOUNCED = re.compile(
    rf"(?:\b(?:{_SOURCE})\b[^\n.!?]{{0,60}}[:：]|\b(?:says?|said|wrote|writes|states|reads|prints?|printed|returns?|returned|shows?|got|get|getting|seeing|see|saw|gives|gave|sagt|schreibt|meldet|dit|écrit|affiche|dice|muestra|diz|mostra|пишет|выводит|diyor)"
    r"(?: (?:me|us|this|that|the following|the)){0,2}[:：]|(?:日志|輸出|输出|页面|網頁|网页|邮件|报错|ログ|出力|ページ|メール|로그|출력|페이지|메일)[^\n。]{0,20}[:：]|\b(?:from|by) (?:chatgpt|gpt\S{0,4}|claude|gemini|copilot|an? (?:ai|llm|bot|blog|forum)|stack ?overflow|reddit|the (?:internet|web))\b[^\n]{0,40}:)[ \t]*$",
    re.IGNORECASE,
)
"""The end of a line that ends in a colon."""
_FORWARDED = re.compile(
    r"(?:-{3,} ?(?:begin|start|forwarded|original|weitergeleitete|ursprüngliche|message (?:transféré|d'origine))\b[^\n]{0,60}|(?:From|Von|De|Da|Od|Van|Från|От|Kimden|发件人|寄件者|差出人) ?[:：] ?\S[^\n]{0,120})[ \t]*$",
    re.IGNORECASE,
)
"""The line over a mail that is passed on."""
_PROSE_SOURCE = re.compile(
    r"^(?:-{3,} ?(?:forwarded|original|weitergeleitete|ursprüngliche)|(?:From|Von|De|Da|Od|Van|Från|От|Kimden|发件人|寄件者|差出人) ?[:：])|\b(?:from|by) (?:chatgpt|gpt|claude|gemini|copilot|an? (?:ai|llm|bot|blog|forum)|stack ?overflow|reddit|the (?:internet|web))\b|\b(?:page|web ?page|website|site|article|docs?|documentation|readme|wiki|ticket|issue|e-?mail|mail|letter|note|feedback|review|comments?|post|thread|tweet|transcript|chat|conversation|quote|text|template|prompt|says?|said|wrote|writes|states|reads"
    r"|seite|nachricht|sagt|schreibt|courriel|dit|écrit|correo|página|mensaje|dice|diz|pagina|пишет|diyor)\b|页面|網頁|网页|邮件|ページ|メール|페이지|메일",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(
    r"\b(?:minutes|notes|reports?|summary|findings|audit|survey|agenda|draft|protocol|logs?|tables?|spreadsheet|protokoll|bericht|notizen|compte[- ]rendu|rapport|acta|informe|verbale|relazione|ata|relatório|notulen|verslag|protokół|raport|протокол|отч[её]т|tutanak|rapor)\b|会议记录|會議記錄|报告|報告|議事録|レポート|회의록|보고서",
    re.IGNORECASE,
)
_MESSAGE = re.compile(
    r"\b(?:e-?mail|mail|letter|message|chat|conversation|thread|tweet|posts?|page|web ?page|website|site|ticket|issue|comments?|feedback|readme|wiki|prompt|template|quote)\b|邮件|網頁|网页|メール|ページ|메일|페이지",
    re.IGNORECASE,
)
_RETURNS = re.compile(
    r"(?:-{3,} ?(?:end|ende|fin)\b|-{3,}[ \t]*$|i |i'|my |so |anyway|ok(?:ay)?\b|can you|could you|would you|also\b|btw|by the way|and (?:please|don't|never|always)|for (?:us|me|you)\b|what |how |why |let's|we |as i |as far as |and mind |mind you|by the way|one more thing|that said|now |->|=>"
    r"|ich |mein|also |übrigens|kannst|bitte|je |mon |peux|yo |mi |puedes|por favor|io |puoi|eu |você|мы |я |можешь|пожалуйста|ik |kun je|ben |lütfen|我|请|請|私|저|나는|أنا|من فضلك|मैं|कृपया)",
    re.IGNORECASE,
)
"""The beginning of a paragraph with which the person takes the word again after they quoted somebody."""
_OWN_HEADING = re.compile(
    r"^(?:please )?follow (?:these|the following) |\b(?:rules?|conventions?|guidelines?|requirements?|constraints?|preferences?|please|always|never|must|keep|use|regeln?|vorgaben|règles|reglas|regole|regras|regels|zasady|правила|kurallar)\b|规则|规范|要求|ルール|規則|규칙|قواعد|नियम",
    re.IGNORECASE,
)
"""A heading over what the person wants, though it names a text: "Rules for commit messages:"."""
_LOOKED_UP = re.compile(
    r"^(?:#{1,6} )?(?:\w+ ){0,3}(?:(?:search|query|tool|web|lookup|retrieval) (?:results?|hits)|memories|(?:relevant|related|retrieved|recalled) \w+)"
    r"(?: (?:for|from|of|about) [^\n:]{1,60})?[:：]?\s*$",
    re.IGNORECASE,
)
"""A line that announces what was looked up, if a list stands under it."""
_CITED = re.compile(
    r"^[ \t]*(?:clause|article|art\.|§{1,2}|artikel|klausel|cláusula|artículo|artigo|clausola|articolo|статья|пункт|第[\d一二三四五六七八九十]{1,4}条)[ \t]?\d{0,3}(?:\.\d{1,3}){0,3}[a-z]?[ \t]?[:.)：-]",
    re.IGNORECASE,
)
"""A numbered part of a contract or a law."""
_ROWS = 5
"""Lines of one shape, one behind the other, that are data."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CELL_WORDS = 3
_DIFF = re.compile(r"diff --git |@@ |--- [ab]/|\+\+\+ ")
_SYMBOLS = re.compile(r"[{}\[\]();=<>|\\_$&^~+@#%]|::|//|->")
_SOMEBODY_SAYS = re.compile(
    r"^(?!(?:i|we|my|our|as i|ich|wir|mein|unser)\b)[^\n:.!?]{1,80}?\b(?:says?|said|writes|wrote|claims?|claimed|schreibt|sagt|écrit|dit|escribe|dice|scrive|schrijft|pisze|пишет)\b[^\n:.!?]{0,30}: (?=\S)"
    r"|^(?:(?:this|that|it|the following|text)\b[^\n:.!?]{0,30}\bfrom\b|(?:please )?(?:translate|proofread|rewrite|paraphrase|summari[sz]e|übersetze?|korrigiere)\b)[^\n:.!?]{0,60}: (?=\S)",
    re.IGNORECASE,
)
"""Somebody else's words in the line of the person's. What the person's own people say, the person passes on."""
_OPTION = re.compile(r"(?<!\S)\(\w{1,2}\)")
"""The name of one of several things, as in "rather (b)"."""
_INDENT = ("  ", "\t")
_CELLS = re.compile(r"(?:^|[^|])(?: \| [^|]{0,80}){3}|(?:[^\t\n]{1,80}\t){3}")
"""A row of a table."""
_BULLET = re.compile(r"^[ \t]*(?:[-*•‣–]|\d{1,3}[.)])[ \t]+")


def own_paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs that the person wrote, without the pasted lines in them."""
    quoting = False
    for block in _blocks(text):
        if quoting and (block == [TAKEN_OUT] or _RETURNS.match(block[0].lstrip())):
            quoting = False
        if quoting:
            continue
        if all(line.startswith("    ") and not _BULLET.match(line) for line in block):
            continue  # an indented block is code or a quotation
        kept: list[str] = []
        own = [_before_quote(line) for line in block]
        rows = _rows(own)
        pasted = [number in rows or is_pasted_line(line) for number, line in enumerate(own)]
        for number, (line, is_pasted) in enumerate(zip(own, pasted, strict=True)):
            # What is indented beside code is more of it, though it reads like prose.
            if is_pasted or (line.startswith(_INDENT) and any(pasted) and not _BULLET.match(line)):
                if kept:
                    yield "\n".join(kept)
                kept = []
                continue
            kept.append(line)
            if _announces(line):
                # Lines of a log are known one by one. What somebody writes goes on until the person takes the word again.
                quoting = _is_of_prose(line[-200:])
                if quoting and line is not own[-1]:
                    break
            is_looked_up = (
                _LOOKED_UP.match(line[:200]) is not None and _OWN_HEADING.search(line[:200]) is None
            )
            if is_looked_up and any(map(_BULLET.match, own[number + 1 : number + 2])):
                break
        if kept:
            yield "\n".join(kept)


def _before_quote(line: str) -> str:
    """The line without what somebody else says in it: "The customer writes: always pay at once."."""
    found = _SOMEBODY_SAYS.search(line[:400])
    return line if found is None else line[: found.end()]


def _rows(lines: list[str]) -> frozenset[int]:
    """The numbers of the lines that are rows of data: several of one shape stand one behind the other."""
    found: set[int] = set()
    start = 0
    shapes = [_shape(line) for line in lines]
    for number in range(1, len(lines) + 1):
        if number == len(lines) or not shapes[number] or shapes[number] != shapes[start]:
            if number - start >= _ROWS and shapes[start]:
                found.update(range(start, number))
            start = number
    return frozenset(found)


def _shape(line: str) -> str:
    """What lines of one table have in common: all but the numbers, or how many short cells stand in them. Empty: no row."""
    sample = line.strip()[:600]
    cells = re.split(r"[,;\t]", sample)
    if len(cells) >= _CELL_WORDS and all(len(cell.split()) <= _CELL_WORDS for cell in cells):
        return f"{len(cells)} cells"
    bare = _NUMBER.sub("0", sample)
    return bare if bare != sample and not _BULLET.match(line) else ""


def _announces(line: str) -> bool:
    """Whether what follows a line is somebody else's."""
    end = line[-300:]
    is_announced = end.rstrip().endswith((":", "：")) and _ANNOUNCED.search(end) is not None
    return (is_announced or _FORWARDED.match(end) is not None) and not (
        _BULLET.match(line) or _OWN_HEADING.search(end)
    )


def _is_of_prose(announced: str) -> bool:
    """Whether what a line announces is somebody's prose. In a report or in minutes, a paragraph apart may be the person's own."""
    is_document = _DOCUMENT.search(announced) is not None and _MESSAGE.search(announced) is None
    if is_document and not _FORWARDED.match(announced):
        return False
    return _PROSE_SOURCE.search(announced) is not None


def _blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs as lines, without fenced code, quotations and lines of another's role."""
    block: list[str] = []
    fence, other, in_diff = "", False, False
    for line in text.split("\n"):
        if fence:
            if line.strip().startswith(fence):
                fence = ""
            continue
        if (opened := _FENCE.match(line)) is not None:
            # A fence that is closed on its own line is a piece of code in a sentence.
            if opened[1] not in line[opened.end() :]:
                fence = opened[1]
            if block:
                yield block
            block = []
            continue
        if not line.strip():
            other = in_diff = False
            if block:
                yield block
            block = []
            continue
        if line.lstrip().startswith(">"):
            continue
        other = other or _ROLE.match(line) is not None
        in_diff = in_diff or _DIFF.match(line) is not None
        if not other and not (in_diff and line.startswith(("+", "-", " ", "@@", "diff "))):
            block.append(line)
    if block:
        yield block


def is_pasted_line(line: str) -> bool:
    """Whether a line is code, a log, a diff or the like."""
    if _CITED.match(line[:100]):
        return True
    if _LOG.match(line[:600]):
        return not _BULLET.match(line)
    if line.startswith(("\t", "        ")) and not _BULLET.match(line):
        return _is_code(line)
    may_be_row = "|" in line or "\t" in line
    return (may_be_row and _CELLS.search(line[:600]) is not None) or _is_code(line)


def _is_code(line: str) -> bool:
    sample = _OPTION.sub(" ", line[:600])
    return len(_SYMBOLS.findall(sample)) > max(3, len(sample) // 9)
