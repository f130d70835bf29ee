"""Words that mark an error, a decision, a constraint, a goal or a next step, in the languages that people use.

A cue is only a hint: whatever looks for cues also has a source that needs no words, such as calls and results,
questions, task lists, or the end of the session.
"""

from __future__ import annotations

import re
from functools import cached_property

from compact.messages.excerpts import ERRORS

_DEFINES = "def|class|func|function|fn|struct|interface|enum|type|trait|const"


def _cue(latin: str, others: str) -> re.Pattern[str]:
    """Latin and Cyrillic cues match at the start of a word; those of scripts without spaces match anywhere."""
    return re.compile(rf"\b(?:{latin})|{others}", re.IGNORECASE)


class Cue:
    """A pattern for a text in lower case, which takes a quarter of the time that ignoring the case does.

    It is compiled when it is first used, because most processes never look for most cues.
    """

    def __init__(self, pattern: str) -> None:
        self._source = pattern

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._source)

    def search(self, text: str) -> bool:
        """Whether the text contains it."""
        return self._pattern.search(text.lower()) is not None

    def match(self, text: str) -> bool:
        """Whether the text begins with it."""
        return self._pattern.match(text.lower()) is not None


def _words(latin: str, others: str) -> Cue:
    """Like `_cue`."""
    return Cue(rf"\b(?:{latin})|{others}")


def _label(names: str) -> re.Pattern[str]:
    """A line that begins with one of these names and a colon, or a heading that is one of them."""
    return re.compile(
        rf"[\W_]*(?:{names})(?:[*_`]{{0,3}}\s*[:：][*_`]{{0,3}}|[*_`]{{1,3}}\s*[—–-](?=\s)|\s[—–-](?=\s)|[*_\s]*$)\s*(?P<text>.*)",
        re.IGNORECASE | re.DOTALL,
    )


DECISION = _words(
    r"(?:i|we)(?:['’]ve|['’]d| have| had)?(?: (?:just|also|therefore|finally|then|now|already))? (?:decided|chose|chosen|opted|picked"
    r"|settled (?:on|for)|went with|ended up with|agreed (?:to|on))\b|(?:i['’]m|we['’]re|i am|we are) (?:going|sticking|staying) with\b"
    r"|(?<![a-z] )(?:going|sticking) with\b|(?:i['’]ll|we['’]ll|i will|we will|let['’]s|let us) (?:go|stick|stay|settle) (?:with|on|for)\b"
    r"|it (?:was|is) decided\b|decided (?:to|on|against|that)\b|we(?:['’]ll| will) use\b|(?<![a-z] )(?:chose|opted (?:for|to)|picked|settled on)\b"
    r"|(?:was|were|has been|have been) (?:chosen|picked|selected)\b|(?:the|my|our|final|key|design) decisions?(?: (?:is|was|made)\b|\s*[:—–-])"
    r"|decision(?: \d+)?\s*:|(?:i|we) (?:switched|moved) to\b"
    r"|(?:ich|wir) (?:habe|haben|hab)\b.{0,120}\b(?:entschieden|gewählt|beschlossen)|entscheidung\s*:|(?:ich|wir) entscheiden? (?:mich|uns)"
    r"|beschlossen\s*:|(?:ich|wir) (?:nehmen?|bleiben? bei)\b"
    r"|(?:j['’]ai|nous avons|on a) (?:décidé|choisi|opté|retenu)|(?:je|nous) (?:choisi(?:s|ssons)|retien(?:s|t)|retenons)\b|décision\s*:"
    r"|(?:he|hemos) (?:decidido|elegido|optado)|decid(?:í|imos)\b|eleg(?:í|imos)\b|opt(?:é|amos)\b|decisión\s*:"
    r"|(?:decidi|escolhi|escolhemos|optei|optamos|vamos usar|vou usar)\b|decisão\s*:"
    r"|(?:ho|abbiamo) (?:deciso|scelto|optato)|decisione\s*:|реш(?:ил[аи]?|ено)\b|выбра(?:л[аи]?|но)\b|решение\s*:"
    r"|karar ver|(?:seçtim|seçtik)\b|karar\s*:|zdecydował|wybra(?:łem|łam|liśmy)|postanowi(?:łem|łam|liśmy)|decyzja\s*:",
    r"决定|決定|选择了|選擇了|(?:我们?|我們)(?:采用|採用|改用|选用)|ことにし|に決め|を採用(?:し|する)|결정(?:했|하였|:)|하기로|선택했|قررت|قررنا|اخترنا|اخترت|निर्णय लिया|तय किया",
)
"""What somebody says who has decided. `ALTERNATIVE` alone does not say so: it may describe what a program does."""
UNDECIDED = _words(
    r"(?:not|n['’]t|haven['’]t|never)(?: yet)? (?:been )?(?:decided|chosen|settled)|undecided|(?:to|you|before|until|please|can|could|should|must|might|they|if (?:you|we|i)"
    r"|when (?:you|we|i)) (?:decid|choos|pick)|decide (?:whether|if|which|between)|open decision|whichever|i['’]d rather not"
    r"|(?:wenn|falls|ob) .{0,60}entschieden|noch nicht entschieden|nicht entschieden|pas (?:encore )?décidé|no (?:he|hemos) decidido",
    r"未决定|未決定|还没决定|尚未决定|決めていません|결정하지",
)
CAUSE = _words(
    r"root cause(?! (?:investigation|analysis))|culprit|the (?:real |actual |underlying |core |main |key |only |whole )?(?:problem|issue|bug|reason|cause|failure|difference|mistake|trouble) (?:is|was|here is|lies|comes)\b"
    r"|caused by|(?:is|was|are|were|fails?|failed|happens|happened|breaks|broke|crashes|crashed) (?:\w+ )?(?:because|due to)\b|that['’]s why|which is why|stems from|boils down to"
    r"|(?:die |der )?(?:ursache|grund|fehler) (?:ist|war|liegt)|liegt (?:daran|an)|verursacht|la cause (?:est|était)|le problème (?:est|était|vient)|la causa (?:es|era|è)|el problema (?:es|era|estaba)"
    r"|o problema (?:é|era|estava)|a causa (?:é|era)|il problema (?:è|era)|причина|проблема (?:в|была)|sorun(?:un nedeni)?\b.{0,40}(?:dı|di|idi|dır|dir)|przyczyn[aą]|problemem (?:jest|był)",
    r"根本原因|原因是|原因为|问题在于|問題在於|问题出在|原因は|原因が|원인은|원인이|السبب|कारण",
)
FOUND = _words(
    r"(?:it |that |which )?turn(?:s|ed) out|confirmed|confirms|verified\b|reproduced|(?:i|we)(?:['’]ve| have)? (?:found|discovered|measured|established|ruled out|proved|located)|found (?:that|the|it|out|a|an)\b"
    r"|(?:shows?|showed|reveals?|revealed|proves?|proved|means|indicates?) (?:that|a|an|the|no|it)\b|key insight (?:is|was|here)\b|the (?:fix|trick|solution|answer|workaround) (?:is|was)\b|no longer\b|in fact\b|this works\b|ruled out"
    r"|(?:did|does)(?:n['’]t| not) (?:help|fix|change|solve|reproduce|make a difference)|(?:made|makes) no difference|(?:has|had|have) no effect|still (?:there|fails?|failing|broken|happens|leaks?|crash(?:es|ing)|the same|reproduces)\b"
    r"|hilft nicht|half nicht|nichts gebracht|immer noch|n['’]a rien changé|toujours pas|no (?:ayudó|funcionó|sirvió)|sigue fallando|não (?:ajudou|funcionou)|non ha (?:aiutato|funzionato)|не помогло|işe yaramadı|nie pomogło"
    r"|es stellt(?:e)? sich heraus|stellte sich heraus|bestätigt|(?:ich|wir) haben? (?:herausgefunden|festgestellt|gemessen)|il s['’]avère|s['’]est avéré|confirmé|j['’]ai (?:trouvé|constaté|mesuré)"
    r"|result[aó] que|confirmad[oa]|(?:he|hemos) (?:encontrado|comprobado|medido)|descobri|verifiquei|medi\b|risulta che|confermato|ho (?:trovato|verificato|misurato)|оказал(?:ось|ся|ась)|подтвер(?:дил|жден)|выяснил"
    r"|ortaya çıktı|doğrulandı|okazało się|potwierdz",
    r"事实证明|結果發現|原来|没有效果|沒有效果|无效|已确认|确认了|已验证|发现|發現|判明|効果がな|確認(?:した|しました|済み|できました)|分かりました|わかった|확인(?:했|됐|되었)|밝혀|تبين|تأكد|पता चला|पुष्टि",
)
VERDICT = Cue(
    r"\b(?:all|both|every|the|existing|unit|integration|\d+) (?:[\w`-]+ ){0,3}(?:tests?|checks?|suite|build|lint(?:er|s|ing)?|ci)\b.{0,40}\b(?:pass|fail|clean|green|succe|broken)"
    r"|\btests? (?:now )?(?:pass|fail|succeed)|alle tests|tous les tests|tod[oa]s (?:las pruebas|los tests|os testes)|tutti i test|все тесты|tüm testler|wszystkie testy|所有测试|全部测试|テストは?(?:すべて|全て)|모든 테스트",
)
"""What a run of tests or checks came to."""
WORKS = Cue(
    r"\b(?:works?|worked|pass(?:es|ed)?|fail(?:s|ed)?|succeed(?:s|ed)?|crashes|crashed|compiles|builds)\b|funktioniert|läuft|schlägt fehl|fonctionne|échoue|funciona|falla|funziona|fallisce|работает|падает|çalışıyor|działa|通过|成功|失败|動作し|成功し|失敗し|성공|실패|نجح|فشل|सफल|विफल",
)
"""What works and what does not."""
OUTCOME = Cue(
    r"\b(?:pass(?:es|ed)?|fail(?:s|ed)?|works?|worked|succeed(?:s|ed)?|succeeded|builds|built|compiles|compiled|green|clean|broken|crashes|crashed|segfaults|hangs|times out|timed out|returns?|returned|exits?|exited|takes|took|measured|averages|dropped|fell|rose|grew|improved|reduced)\b"
    r"|funktioniert|läuft|schlägt fehl|bestanden|fehlgeschlagen|dauert|fonctionne|échoue|réussi|dure|funciona|falla|pasa[nr]?\b|tarda|demora|passa(?:m|ram)?\b|leva|funziona|fallisce|impiega|работает|падает|прош(?:ли|ёл|ел)|занимает"
    r"|çalışıyor|başarısız|geçti|sürüyor|działa|przechodz|trwa\b|通过|失败|成功|耗时|需要.{0,6}(?:秒|毫秒)|動作し|失敗し|成功し|通り(?:ます|ました)|かか(?:る|ります|りました)|통과|실패|성공|걸립|걸렸|نجح|فشل|يستغرق|पास हो|विफल|सफल",
)
MEASURE = Cue(
    r"(?<![\w.])[~≈<>]?\d[\d,. ]*\s?(?:ms|µs|us|ns|s|sec(?:onds?)?|min(?:utes?)?|h|hours?|[kmgt]i?b|bytes?|%|x|times|rows?|lines?|files?|tests?|errors?|failures?|warnings?|issues?|passed|failed|skipped"
    r"|requests?|calls?|tokens?|users?|entries|records?|items?|matches|occurrences|commits?|sekunden|minuten|zeilen|secondes|lignes|segundos|líneas|секунд|мс|строк|秒|毫秒|分钟|行|个|件|초|줄)(?!\w)|\d+\s?/\s?\d+",
)
ABSENT = _words(
    r"(?:does|do|did|is|are|was|were|has|have|had|can|could)(?:n['’]t| not| never)\b|cannot\b|there(?:['’]s| is| are| was| were) (?:no|only|already)\b|never (?:gets?|called|set|used|read|written|reached|fires?|runs?)|(?:is|are|was|were) (?:missing|unused|unset|empty|null|nil|undefined|absent|already|only|always|stale|dead|identical|correct|wrong|skipped|ignored|lost|overwritten|hardcoded)\b"
    r"|nirgends|fehlt|existiert nicht|gibt (?:es )?kein|n['’]existe pas|manque|il n['’]y a pas|no (?:existe|hay|está)|falta\b|não (?:existe|há)|non (?:esiste|c['’]è)|manca\b|не (?:существует|вызывается|работает|найден)|нет\b|yok\b|eksik|nie (?:istnieje|ma|działa)|brak\b",
    r"不存在|没有|沒有|缺少|从未|存在しない|ありません|ない(?:。|$)|없(?:습니다|다)|غير موجود|नहीं है",
)
HEDGED = _words(
    r"maybe|perhaps|probably|possibly|likely|might|may\b|could (?:be|have)\b|would\b|should\b|shall\b|seems?\b|seemed|appears? (?:to|that)|i (?:suspect|think|guess|wonder|assume|believe|expect)|hypothes|my guess|not sure|unclear|if (?:we|you|i|the|this|that|it|there|a|an)\b|unless|whether|suppose"
    r"|vielleicht|vermutlich|wahrscheinlich|könnte|sollte|falls|scheint|peut-être|probablement|pourrait|devrait|semble|quizás?|tal vez|probablemente|podría|debería|parece|talvez|provavelmente|poderia|deveria|forse|probabilmente|potrebbe|dovrebbe|sembra"
    r"|возможно|вероятно|наверное|может быть|кажется|если|belki|muhtemelen|sanırım|eğer|może\b|prawdopodobnie|chyba",
    r"可能|也许|也許|大概|或许|应该|如果|かもしれ|おそらく|たぶん|でしょう|はず|もし|아마|것 같|수도 있|ربما|قد |شايد|शायद|अगर",
)
"""What is said of a guess, a proposal or a condition. It is not established."""
CORRECTS = _words(
    r"actually|correction|contrary|no longer|after all|in fact|the (?:real|actual|true)\b|now\b|instead\b|earlier (?:i|we)|tatsächlich|eigentlich|doch nicht|nicht mehr|en fait|en réalité|finalement|ne .{1,20} plus\b|en realidad|de hecho|ya no|na verdade|não .{1,20} mais|in realtà|non .{1,20} più"
    r"|на самом деле|больше не|aslında|artık|w rzeczywistości|jednak|już nie",
    r"其实|其實|实际上|實際上|事实上|不再|実は|実際(?:に)?は|もう.{0,8}ない|사실은|더 이상|في الواقع|لم يعد|असल में|अब नहीं",
)
"""What is said where an earlier statement gives way to this one."""
DENIES = _words(
    r"(?:i|we) (?:was|were) (?:wrong|mistaken|incorrect)|i misread|i misunderstood|scratch that|false alarm|(?:that|this|it)(?:['’]s| is| was|n['’]t| is not| was not|['’]s not|) ?(?:wrong|incorrect|not (?:it|right|true|correct|the (?:\w+ )?(?:cause|problem|issue|reason|case))|n['’]t (?:it|right|true|correct|the (?:\w+ )?(?:cause|problem|issue|reason|case)))"
    r"|my (?:earlier|previous|first|initial) (?:\w+ )?(?:was|is) (?:wrong|incorrect|mistaken|off)|(?:isn['’]t|wasn['’]t|is not|was not) the (?:root |real |actual )?(?:cause|problem|issue|culprit|reason)|(?:ich|wir) lag(?:en)? falsch|das (?:stimmt|stimmte) nicht|das ist falsch|war ein irrtum|je me (?:suis|trompais) tromp|je me trompais|c['’](?:est|était) (?:faux|pas ça)"
    r"|me equivoqué|(?:eso )?no (?:es|era) (?:cierto|así|correcto|la causa)|eu estava errado|isso (?:está|estava) errado|mi sbagliavo|(?:è|era) sbagliato|я ошиб|это (?:не так|неверно)|yanılmış|yanlış|myliłem|to (?:nieprawda|nie to)",
    r"我错了|我錯了|搞错了|不对|不對|并非如此|間違っていました|違いました|違います|誤りでした|틀렸|아니었|كنت مخطئ|غير صحيح|गलत था|गलत है",
)
"""What takes an earlier statement back."""
ALTERNATIVE = _words(
    r"instead of|rather than|in place of|anstatt|anstelle|statt\b|plutôt que|au lieu d|en lugar de|en vez de|em vez de|invece d"
    r"|вместо|yerine|zamiast",
    r"而不是|代替|代わりに|ではなく|대신|بدلا|के बजाय",
)
CHOOSING = Cue(
    r"(?:^\W*(?:(?:good|great|right|ok(?:ay)?|now|so|then|also|instead|therefore|yes|perfect|done)\b[\s,.!:—–-]*)*|[,;:.—–]\s*(?:and |but |so |then |therefore )?|\b(?:so|and|but|then|therefore|thus|hence) )"
    r"(?:(?:i|we)(?:['’]ll|['’]ve| will| have|['’]m going to|['’]re going to| am going to)?|let me|let['’]s|let us) (?:just |now |therefore |instead |simply |also |only )*(?:use|used|make|made|keep|kept|put"
    r"|leave|left|skip|skipped|drop|dropped|add|added|store|stored|go|went|do|did|replace|replaced|switch|switched|avoid|avoided|take|took|fix|fixed|update|updated|rewrite|rewrote|extract|extracted"
    r"|restart|restarted|roll|rolled|pin|pinned|split|merge|merged|write|wrote|implement|implemented|create|created|change|changed|move|moved|simplify|simplified|refactor|refactored|remove|removed|inline|inlined"
    r"|treat|treated|set|pass|return|build|built|model|modelled|rely|relied|try)\b|(?:我们?|我們)会?(?:用|使用)|を使(?:い|う)",
)
"""Somebody says what they do or will do. With a reason or an alternative, that is a decision."""
MADE = Cue(
    r"\W*(?:`[^`]+`\W*[—–:-]\s*)?(?:used|kept|made|switched|replaced|moved|changed|updated|converted|put|chose|skipped|dropped|rewrote|reworked|refactored|implemented|simplified)\s",
)
"""How a report of a choice that was carried out begins."""
RATIONALE = _cue(
    r"because|since\b|so that|in order to|due to|therefore|as it|weil|damit|wegen|parce que|afin de|car\b|porque|ya que|para que"
    r"|poiché|perché|потому|чтобы|так как|çünkü|ponieważ",
    r"因为|因為|为了|由于|ため|なので|から、|때문|위해|لأن|क्योंकि",
)
REASON = _label(
    r"(?:the )?(?:reason(?:ing)?|rationale|why|motivation|justification)|(?:be)?gründ(?:e|ung)|grund|raisons?|motivos?|razón|razones|motiv[oi]"
    r"|причин[аы]|gerekçe|neden|powód|uzasadnienie|理由|原因|이유|السبب|कारण"
)
"""A reason that is labelled so, or stands under such a heading."""
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
    rf"\b(?:{ERRORS}|fails|denied|not found|cannot|can't|unable|undefined"
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
BLOCKED = _label(
    r"blocked|blockers?|blocking|waiting (?:for|on)|stuck|on hold|blockiert|blockade|bloqué|bloquée|bloqueado|bloqueada|bloqueos?|impedimentos?"
    r"|bloccato|заблокировано|блокер|engellendi|zablokowane|阻塞|受阻|阻碍|卡住|ブロック(?:中|されている)?|차단됨|막힘|محظور|अवरुद्ध"
)
IN_PROGRESS = _label(
    r"in[- ]progress|working on|under way|in arbeit|laufend|en cours|en curso|en progreso|em andamento|in corso"
    r"|в работе|в процессе|devam ediyor|w toku|进行中|進行中|作業中|진행 중|قيد التنفيذ|जारी"
)
NEXT_STEP = _label(
    r"(?:immediate |my |the |suggested |remaining )?next(?: steps?| up| actions?)?|to-?do|todos|remaining(?: work| tasks| steps)?|still to do|follow[- ]?ups?"
    r"|action items?|nächste(?:r|n)? schritte?|als nächstes|offen|prochaines? étapes?|à faire|próximos? pasos?|siguientes? pasos?|por hacer|pendientes?"
    r"|próximos? passos?|a fazer|prossimi? pass[oi]|da fare|следующи[ей] шаги?|дальше|осталось|sonraki adım(?:lar)?|yapılacaklar|następn[ye] kroki?"
    r"|do zrobienia|下一步|接下来|待办|待辦|次のステップ|次の手順|残り|다음 단계|할 일|الخطوة التالية|अगला कदम"
)
RESOLVED = _words(
    r"unblocked|no longer (?:blocked|waiting|stuck)|resolved|solved|arrived|received|(?:is|are) (?:back|available|done|fixed|through)|got (?:the|access)|gelöst|behoben|erledigt|nicht mehr blockiert|débloqué|résolu|desbloque|resuelto|resolvido"
    r"|sbloccat|risolt|разблокирован|решен[оа]?\b|çözüldü|rozwiązan|odblokowan",
    r"已解决|已解決|解除|解決し|해결|تم حل|हल हो",
)
BLOCKS = _words(
    r"blocked (?:by|on|until|because)|can(?:['’]|no)t (?:continue|proceed|go on)|waiting (?:for|on) (?:the|your|a|an|access|approval)\b|blockiert (?:durch|von|bis)|warte auf|bloqué par|en attente de|bloqueado por|a la espera"
    r"|aguardando|in attesa|ждём|жду\b|bekliyor|czekam",
    r"被.{0,12}阻|等待|待ち|기다리|في انتظار|प्रतीक्षा",
)
SMALL_TALK = re.compile(
    r"\W*(?:(?:(?:sounds|looks) (?:good|great|right|fine)|great (?:question|idea|point|catch|news)|good (?:question|idea|point|catch|news)|(?:oh )?(?:ok(?:ay)?|sure|yes|yep|no problem"
    r"|of course|absolutely|certainly|perfect|great|excellent|awesome|nice|cool|thanks|thank you|got it|understood|done|alright|right|exactly|you['’]re (?:absolutely )?(?:right|welcome)"
    r"|makes sense|fair (?:enough|point)|my (?:bad|apologies)|sorry|apologies|hello|hi|hey|glad (?:to|that|I).{0,30}|happy to.{0,30}|I['’]d rather not|let me (?:check|see|look|think|know|try)(?: (?:that|this|it|on that|into (?:it|that|this)))?(?: first| again| now)?"
    r"|one moment|hold on|let['’]s (?:see|go|do it)|I see|gern|klar|alles klar|gute frage|verstanden|d['’]accord|bien sûr|bonne question|claro|de acuerdo|buena pregunta|entendido"
    r"|certo|va bene|хорошо|понятно|отличный вопрос|tamam|anladım|dobrze|jasne|好的?|没问题|明白了?|わかりました|承知しました|了解(?:です)?|네|알겠습니다))[\s,;!.…:)。！-]*)+",
    re.IGNORECASE,
)
"""A sentence that is nothing but a greeting, a thanks, a yes or a wait."""
