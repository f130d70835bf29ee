"""The words by which people give rules, choose, correct, change and withdraw, in many languages: data, no logic.

A phrase is matched against the form of a sentence that `forms.form` makes: lower case, one space between words, punctuation
apart, a space at both ends, quotations and code masked. So a pattern that begins and ends with a space matches whole words.
Every pattern runs on RE2, in time that is linear in the length of the sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

_MAX_MEMORY_BYTES = 64 << 20
_MOST_KNOWN, _LONGEST_KNOWN = 1_024, 500
"""How many forms each set of phrases remembers, and how long one may be, in characters."""


class Phrases:
    """Phrases that are looked for together. They are compiled when they are first looked for.

    In an English sentence only the English ones are: "a", "her" or "log" mean something else elsewhere. Those of Turkish verbs
    are looked for only in what may be Turkish: words of other languages have the same endings.
    """

    def __init__(self, english: str, others: str, turkish: str = "") -> None:
        in_any = f"{english}|{others}" if others else english
        self._sources = (english, in_any, f"{in_any}|{turkish}" if turkish else in_any)

    def _search(self, form: str) -> Any:
        return _pattern_of(self._source(form)).search(form)

    def _stand_in(self, form: str) -> bool:
        return _finder(self._source(form))(form.encode("utf-8", "replace")) is not None

    def _source(self, form: str) -> str:
        english, others, turkish = self._sources
        if is_english(form):
            return english
        return turkish if turkish is not others and may_be_turkish(form) else others

    def found(self, form: str) -> bool:
        """Whether one of them stands in a form."""
        return self._found(form) if len(form) <= _LONGEST_KNOWN else self._stand_in(form)

    @cached_property
    def _found(self) -> Callable[[str], bool]:
        # A sentence is judged from several sides, and compared with others as long as it stands.
        return lru_cache(maxsize=_MOST_KNOWN)(self._stand_in)

    def removed(self, form: str) -> str:
        """The form without them."""
        while self.found(form) and (match := self._search(form)) is not None and match[0].strip():
            form = f"{form[: match.start()]} {form[match.end() :]}"
        return form


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    return options


@cache
def _pattern_of(source: str) -> Any:
    return re2.compile(source, _options())


@cache
def _finder(source: str) -> Callable[[bytes], Any]:
    """A function that says whether a pattern stands in a text. A set of one pattern does not look for the place, which costs more."""
    patterns = re2.Set.SearchSet(_options())
    patterns.Add(source)
    patterns.Compile()
    found: Callable[[bytes], Any] = patterns.Match
    return found


_ENGLISH_LIST = (
    "the is are was to of and you your it it's that that's this with for be been have has i'm i'll i'd we we'll should would could can't don't doesn't not my our"
    " any from they there their them what which will just please all only when use keep always never no"
)
_ENGLISH = frozenset(_ENGLISH_LIST.split())
_FOREIGN_LIST = (
    "der das den und nicht ist für mit auf ein eine ich du wir zu sich auch le la les des est une pour dans pas je tu vous el los las que por para con una es il gli che di per non è un o os as não é uma het een niet van voor"
    " na się nie jest że w z do ve bir bu için je ne si se lo da em no"
)
_FOREIGN = frozenset(_FOREIGN_LIST.split()) - {"no", "do", "as", "na", "o"}


@lru_cache(maxsize=4_096)
def is_english(form: str) -> bool:
    """Whether a form is clearly English: it has English function words, and more of them than of other languages."""
    tokens = form.split()
    english = sum(map(_ENGLISH.__contains__, tokens))
    foreign = sum(map(_FOREIGN.__contains__, tokens))
    return (english > foreign and form.isascii()) or english >= 2 * (1 + foreign)


_NOT_TURKISH_LIST = (
    "der die das den dem des ein eine einen einem und nicht ist sind mit auf für von vom zu zum zur im am wir ich es sie er wie als bei nur kein keine"
    " le la les du est une un et pour dans par avec sur pas ce au aux nous vous je el los las una con que para del y no más es son lo su mi"
    " il lo gli di che per non è sono alla alle nel nella sul ho ha hai mi si como com os as um uma dos das nos nas não que mais seu sua"
    " het een van voor met niet naar op aan geen wij we w z na do nie się jest po dla od the to of is a"
)
_NOT_TURKISH = frozenset(_NOT_TURKISH_LIST.split())
_TURKISH_LETTERS, _LETTERS_ELSEWHERE = frozenset("ğış"), frozenset("äßéèêàãõáíóúìòùœæåąćęłńśźżñ¿¡")


@lru_cache(maxsize=4_096)
def may_be_turkish(form: str) -> bool:
    """Whether a form may be Turkish: it has letters of Turkish, or neither letters nor words of the languages around."""
    if not _TURKISH_LETTERS.isdisjoint(form):
        return True
    return _LETTERS_ELSEWHERE.isdisjoint(form) and _NOT_TURKISH.isdisjoint(form.split())


def _words(*alternatives: str) -> str:
    return " (?:" + "|".join(alternatives) + ") "


def _phrases(english: str, words: str, others: str = "", turkish: str = "") -> Phrases:
    """Whole words in scripts that part them, and `others` anywhere."""
    elsewhere = _words(words.removeprefix("|")) + (f"|{others}" if others else "")
    return Phrases(_words(english), elsewhere, _words(turkish) if turkish else "")


def _pattern(english: str, others: str = "", turkish: str = "") -> Phrases:
    """Patterns; without `others`, the same in every language."""
    return Phrases(english, others.removeprefix("|"), _words(turkish) if turkish else "")


# --- where an order may begin

_MARKS_BEFORE = r"^ |[,;:.!()—–-] "
_LEAD = (
    rf"(?:{_MARKS_BEFORE}| (?:and|but|so|or|then|also|please|pls|plz|just|ok|okay|hey|again|remember|reminder|note|important|no|yes|rule|actually|still"
    r"|however|though|oh|well|kindly|btw|plus|additionally|furthermore|finally|lastly|first|second|third|generally|in general|one thing|everyone) )"
)
_LEAD_ELSEWHERE = (
    rf"(?:{_MARKS_BEFORE}| (?:und|aber|bitte|also|dann|außerdem|et|mais|puis|aussi|y|pero|también|por favor|e|ma|anche|mas|também|en|maar|ook|graag|i|ale|też|proszę|и|а|но|также"
    r"|пожалуйста|ve|ama|ayrıca|lütfen|و|لكن|और|लेकिन|कृपया) )"
)

# --- rules that are rules wherever they stand

STRONG = _pattern(
    english=_LEAD
    + r"(?:never(?: ever)?|do not|don't|dont|do n't|always|avoid|refrain from|stop|quit|no more|under no circumstances|make (?:very |absolutely )?sure|be sure|ensure"
    r"|remember|keep in mind|bear in mind|stick (?:to|with)|stay (?:away|out|off|within|on|in)|hands off|keep your hands off|use only|only use|only ever|from now|leave \S+(?: \S+){0,8} (?:alone|untouched|as is|as it is|as they are|unchanged|intact)"
    r"|keep \S+(?: \S+){0,8} (?:alone|untouched|as is|as it is|as they are|unchanged|intact|below|under|short|small|green|private|compatible|in sync|up to date|free of|to a minimum|at most))[ ,]"
    + "|"
    + _words(
        # English
        r"must not|mustn't|must never|must always|must only|shall not|shall never|may not|may never|may only|are not to|is not to|is never to|are never to|never (?:allowed|acceptable|okay|ok)"
        r"|(?:is|are|be|stays?|remains?) (?:strictly |absolutely |completely |totally )?(?:off limits|off-limits|forbidden|prohibited|not allowed|banned|taboo|mandatory|compulsory|non-negotiable|not negotiable|read-only|read only|frozen|obligatory)"
        r"|off limits|off-limits|under no circumstances|at no (?:point|time|stage)|(?:it's|it is) (?:very |really |absolutely )?(?:important|crucial|essential|critical|vital|imperative) (?:that|to)|no matter what|at all costs|not under any circumstances"
        r"|without (?:asking|my|explicit|prior|telling|first|checking with|permission|approval|consulting)"
        r"|from now on|from here on|from here on out|from this point on|from this point|from today on|as of now|as of today|effective immediately|going forward|moving forward|henceforth|for the rest of (?:this|the)|as a (?:general )?rule|rule of thumb|for all future|in all future|until further notice|until i (?:say|tell|approve|confirm|give)|unless i|unless told|unless otherwise|unless asked|unless explicitly"
        r"|(?:please|kindly) (?:\S+ )?(?:do not|don't|dont|never|always|avoid|only|keep|use|stick|make sure|ensure|leave|refrain|stop|remember|limit|respect|prefer|answer (?:in|with|only)|reply (?:in|with|only)|respond (?:in|with|only)|write (?:in|all|every)|ask (?:me|first|before)|check with)"
        r"|i (?:want|need|expect|require|insist|ask|would like|also want|really want) (?:that )?(?:you to|you not to|that you|all|every|everything|each|only|no)|i'd like you to|i(?:'d| would| must| have to|'ll) ask (?:you|that)|i(?:'m| am) asking you to|i beg you|i don't want|i do not want|i never want|i dont want|i won't accept|we don't want|we do not want"
        r"|you (?:must|must not|mustn't|should never|should always|should not|shouldn't|may|may not|may only|can only|cannot|can't|can not|are not|aren't|have to|need to ask|are to|shall|are only|are free to|will always|will never|should only)"
        r"|(?:we|nobody|no one|everyone|anyone|everybody) (?:must|never|always|only|don't|do not|may|has to|have to) \S+|(?:nobody|no one|everyone|anyone) (?:can|can't|cannot) \S+"
        r"|don't you dare|ask (?:me )?(?:first|before)|check with me|run it by me|get my (?:ok|okay|approval|permission|sign-off)|wait for my|wait until i|let me (?:know|review|approve|see|check) (?:before|first)|tell me before|show me \S+(?: \S+){0,6} before|confirm with me"
    ),
    others=_words(
        # German
        r"niemals|auf keinen fall|unter keinen umständen|keinesfalls|ab jetzt|ab sofort|ab nun|ab heute|von jetzt an|von nun an|in zukunft|künftig|zukünftig|bis auf weiteres|grundsätzlich|darfst? (?:\S+ ){0,4}(?:nicht|nie|niemals|nur|keine?n?)|dürfen (?:\S+ ){0,4}(?:nicht|nie|niemals|nur|keine?n?)|muss (?:\S+ ){0,4}(?:immer|stets|bleiben|sein)|müssen (?:\S+ ){0,4}(?:immer|stets|bleiben|sein)"
        r"|(?:ist|sind|bleibt|bleiben) (?:\S+ )?(?:verboten|tabu|untersagt|nicht erlaubt|pflicht|gesperrt)|bitte (?:\S+ ){0,4}(?:nicht|nie|niemals|immer|nur|keine?n?|stets)|achte? (?:bitte )?darauf|achten sie|denke? (?:bitte )?daran|vergiss nicht|stelle? (?:bitte )?sicher|ich (?:möchte|will|wünsche) (?:nicht|keine?n?|dass|nur)|finger weg|lass (?:\S+ ){1,6}(?:in ruhe|unverändert|so wie|wie)|frag (?:mich )?(?:\S+ )?(?:erst|zuerst|vorher|immer|bevor)|ohne (?:\S+ )?(?:rückfrage|rücksprache|absprache|zu fragen|meine|mein|meiner)|nur noch|nie wieder|nicht mehr|kein\S* \S+ mehr"
        # French
        r"|ne (?:\S+ ){1,4}(?:jamais|pas|plus|que|rien|aucun|aucune)|n'\S+ (?:\S+ ){0,3}(?:jamais|pas|plus|que|rien|aucun|aucune)|jamais de|jamais|à partir de maintenant|désormais|dorénavant|à l'avenir|en aucun cas|sous aucun prétexte|il est interdit|interdit|interdite|il faut (?:toujours|que)|il ne faut|toujours|assure-toi|assurez-vous|n'oublie pas|veille à|veillez à|je (?:veux|souhaite|voudrais) (?:que|pas|uniquement)|je ne veux|sans (?:me demander|mon accord|ma permission|demander)|uniquement|plus jamais|plus de"
        # Spanish
        r"|nunca|jamás|siempre|a partir de ahora|de ahora en adelante|en adelante|desde ahora|bajo ninguna circunstancia|en ningún caso|bajo ningún concepto|prohibido|prohibida|está prohibido|asegúrate|asegúrese|recuerda|ten en cuenta|no (?:uses|use|toques|toque|hagas|haga|borres|borre|modifiques|modifique|cambies|cambie|subas|suba|añadas|agregues|pongas|escribas|olvides|instales|despliegues|ejecutes|elimines|crees|publiques|envíes|incluyas|metas|empujes|fusiones|rompas|mezcles|repitas|respondas|contestes|\S+es|\S+as)|quiero que|no quiero|sin (?:preguntar|preguntarme|mi permiso|mi aprobación|consultarme)|solo se|sólo se|no se (?:debe|puede|permite|admite)"
        # Italian
        r"|non (?:\S+ ){0,3}mai|mai (?:più |usare |fare |toccare )?\S+[aei]re|mai più|d'ora in poi|da ora in poi|da adesso in poi|in futuro|sempre|in nessun caso|per nessun motivo|vietato|è vietato|assicurati|ricorda|ricordati|tieni presente|non (?:usare|toccare|fare|modificare|cancellare|eliminare|aggiungere|cambiare|pushare|scrivere|installare|committare|pubblicare|rimuovere|creare|dimenticare|inviare|mettere|\S+[aei]re|\S+[aei]rlo|\S+[aei]rla)|voglio che|non voglio|senza (?:chiedere|chiedermi|il mio|la mia)|solo ed esclusivamente|soltanto|lascia (?:\S+ ){1,6}(?:stare|così|com'è|invariat\S)"
        # Portuguese
        r"|nunca|sempre|a partir de agora|de agora em diante|daqui em diante|daqui para a frente|em hipótese alguma|de forma alguma|em nenhuma circunstância|proibido|proibida|é proibido|certifique-se|lembre-se|lembra-te|não (?:use|uses|usar|toque|toques|mexa|mexas|faça|faças|altere|apague|adicione|mude|escreva|instale|esqueça|suba|crie|remova|envie|commite|publique|adicione|adiciones|coloque|quebre|responda|\S+es)|quero que|não quero|sem (?:perguntar|me perguntar|minha|a minha|meu|o meu)|somente|apenas|nunca mais"
        # Dutch
        r"|nooit|altijd|vanaf nu|voortaan|van nu af aan|in geen geval|onder geen (?:enkele )?(?:beding|omstandigheid|voorwaarde)|verboden|niet toegestaan|zorg (?:er )?(?:altijd )?(?:voor|dat)|onthoud|denk eraan|vergeet niet|blijf van|mag (?:\S+ ){0,4}(?:niet|nooit|alleen|geen)|mogen (?:\S+ ){0,4}(?:niet|nooit|alleen|geen)|moet (?:\S+ ){0,4}(?:altijd|blijven|zijn)|ik wil (?:dat|niet|geen|alleen)|zonder (?:te vragen|mijn|eerst)|niet meer|geen \S+ meer|laat (?:\S+ ){1,6}(?:met rust|ongemoeid|zoals|staan)|raak (?:\S+ ){1,8}(?:niet|nooit) aan"
        # Polish
        r"|nigdy|zawsze|od teraz|od tej pory|na przyszłość|od dziś|pod żadnym pozorem|w żadnym wypadku|w żadnym razie|zabronione|nie wolno|zakaz|zabrania się|zakazane|upewnij się|pamiętaj|pamiętaj,|nie zapomnij|dbaj o|chcę, żebyś|chcę żebyś|nie chcę|bez (?:pytania|mojej|mojego|pytania mnie)|wyłącznie|tylko i wyłącznie|nie (?:używaj|dotykaj|rób|ruszaj|zmieniaj|usuwaj|dodawaj|pisz|wrzucaj|commituj|pushuj|instaluj|twórz|modyfikuj|kasuj|\S+aj|\S+uj|\S+ij|\S+yj)"
        # Russian
        r"|никогда|всегда|ни в коем случае|ни при каких обстоятельствах|отныне|впредь|с этого момента|в дальнейшем|с сегодняшнего дня|нельзя|запрещено|запрещается|недопустимо|обязательно|убедись|убедитесь|помни|помните|не забудь|не забывай|следи|я хочу, чтобы|хочу, чтобы|не хочу|без (?:моего|моей|спроса|согласования|разрешения)|исключительно|больше не|не (?:\S+ ){0,2}\S+(?:й|йте|ь|ьте|и|ите)"
        # Turkish
        r"|asla|hiçbir zaman|her zaman|daima|bundan sonra|bundan böyle|şu andan itibaren|artık|artik|hiçbir koşulda|hiçbir şekilde|kesinlikle|yasak|yasaktır|zorunlu|zorunludur|emin ol|unutma|sakın|istemiyorum|bana sormadan|sadece|yalnızca"
        # Arabic
        r"|أبدا|أبدًا|ابدا|دائما|دائمًا|من الآن فصاعدا|من الآن فصاعدًا|من الان فصاعدا|من الآن|ابتداء من الآن|مستقبلا|ممنوع|يمنع|يُمنع|محظور|يجب|لا يجوز|لا يجب|تأكد|تأكدي|تذكر|لا تنس|لا تنسى|لا ت\S+|أريدك أن|لا أريد|بدون (?:إذني|سؤالي|موافقتي|أن تسألني)|دون (?:إذني|سؤالي|موافقتي)|فقط|تحت أي ظرف|بأي حال"
        # Hindi
        r"|कभी (?:भी )?(?:\S+ ){0,4}(?:मत|नहीं|न)|मत (?:\S+)|(?:\S+ )मत|हमेशा|अब से|आगे से|आज से|भविष्य में|किसी भी (?:हालत|स्थिति|हाल) में|मना है|वर्जित|ज़रूरी है|जरूरी है|अनिवार्य|सुनिश्चित|याद रख\S*|ध्यान रख\S*|मैं चाहता हूँ कि|मैं चाहती हूँ कि|नहीं चाहता|नहीं चाहिए|बिना (?:पूछे|मुझसे पूछे|मेरी|मेरे)|केवल|सिर्फ|सिर्फ़|बिल्कुल (?:न|नहीं|मत)|न करें|न करना|न करो"
    )
    # Chinese, Japanese, Korean
    + r"|从不|永远不|永遠不|绝不|絕不|绝对不|絕對不|千万不|千萬不|切勿|请勿|請勿|不要|不得|不许|不許|不准|不能再|禁止|严禁|嚴禁|务必|務必|必须|必須|一定要|一律|始终|始終|总是|總是|永远|从现在起|从现在开始|從現在起|從現在開始|今后|今後|以后(?:都|请|不|只)?|以後(?:都|請|不|只)|只能|只许|只准|只用|别(?:用|动|碰|改|删|再|在|把|忘|提交|推|写|加)|別(?:用|動|碰|改|刪|再|在|把|忘)|先问我|先問我|未经我|未經我|记住|記住|请记得|确保|確保|不允许|不允許|每次都"
    + r"|絶対に|決して|けっして|必ず|かならず|常に|いつも|これから(?:は|ずっと)|今後(?:は)?|以後|禁止|厳禁|てはいけ|てはなら|ではいけ|ではなら|ちゃだめ|ちゃダメ|ないでください|ないで下さい|ないでくれ|ないように|しないで|ないこと|しないこと|のみ(?:使|に|を|で)|だけを?使|許可なく|勝手に|確認してから|ようにしてください|忘れないで|なければなら|必須"
    + r"|절대|결코|반드시|항상|언제나|앞으로(?:는)?|지금부터|이제부터|금지|하지 ?마|하지 ?말|쓰지 ?마|지 ?마세요|지 ?마라|지 ?말아|지 ?마십시오|지 ?말 것|면 안 ?(?:돼|되|됩)|안 ?됩니다|허락 없이|물어보지 않고|꼭 |해야 ?(?:한다|합니다|해|돼|됩니다)|여야 ?(?:한다|합니다|해)|필수|무조건",
    turkish=r"\S+(?:ma|me|mayın|meyin|mayınız|meyiniz|mamalı|memeli|mamalısın|memelisin|malı|meli|malısın|melisin|malıdır|melidir)",
)
"""Rules that are rules in a long message too."""

NOT_STRONG = _phrases(
    r"(?:would|might|may|will|could) (?:need|have) to be|(?:thinks?|thought|believes?|believed|feels?|felt|suspects?|wonders?|fears?|hopes?|guesses|complains?|complained|jokes?|joked) (?:that )?(?:we|they|you|it|he|she|i) (?:always|never|only|don't|must|should|often) \S+|no (?:problem|problems|worries|idea|thanks|thank you|clue|rush|way|wait|luck|biggie|offense)|i (?:always|never|usually|often|still|just|also) \S+|it (?:always|never|still|just) \S+|(?:do not|don't|dont) (?:know|think|see|recall|understand|get|have|recognize|get it|really|believe|mind|care|remember)"
    r"|(?:stop|quit) (?:hook|event|reason|command|signal|button|working|sequence)|don't worry|do not worry|no worries|never mind|nevermind|always (?:been|was|had|returned|failed|fails|returns|shows)|never (?:been|was|had|returned|failed|fails|returns|got|actually|worked|works|happened|happens|seen|fired|fires|appeared|appears)"
    r"|(?:you|we) (?:can't|cannot|don't|never|always) (?:see|have|had|got|know)|remember (?:when|how|what|correctly|now|it|that i)|i (?:don't|do not) want any issues",
    r"|je ne (?:sais|comprends|vois|trouve|crois|pense|me souviens)\S*(?: pas| plus)?|ne (?:marche|fonctionne|démarre|trouve|passe|répond|compile|s'affiche)(?:nt)? (?:pas|plus|jamais)|n'(?:est|a|ont|y a|existe|affiche|arrive|ai|avait|était) (?:\S+ )?(?:pas|plus|jamais)|(?:geht|funktioniert|klappt|läuft|startet|kommt|passiert|stimmt|ist|sind|war|hat|haben|wird|werden|scheint|sehe|weiß|verstehe|finde|erscheint|existiert|kann) (?:\S+ ){0,4}(?:nicht mehr|niemals)"
    r"|(?:werkt|is|zijn|was|heb|hebben|heeft|weet|zie|snap|begrijp|kan|kon|lukt|klopt|vind|denk) (?:\S+ ){0,4}(?:niet|geen)|(?:geht|funktioniert|klappt|läuft|startet|kommt|passiert|stimmt|war|hat|haben|habe|scheint|sehe|weiß|verstehe|finde|erscheint|existiert|kann|konnte|wurde|bin|glaube|denke|brauche) (?:\S+ ){0,5}(?:nicht|keine?n?)|не (?:работает|понимаю|знаю|вижу|могу|запускается|помню|проходит|нашел|нашёл|было|был|была|будет|получается|думаю|уверен|найти)|no (?:funciona|sé|entiendo|veo|puedo|encuentro|aparece|arranca|recuerdo|tengo|es|está|hay|compila|pasa|me acuerdo)|non (?:funziona|so|capisco|vedo|posso|trovo|parte|ricordo|ho|è|c'è|compila)|não (?:funciona|sei|entendo|vejo|consigo|posso|encontro|lembro|tenho|é|há|está|compila|me lembro|era|foi|tem)"
    r"|nie (?:działa|wiem|rozumiem|widzę|mogę|pamiętam|mam|jest|ma|startuje|przechodzi)|werkt (?:\S+ )?niet meer|لا (?:أعرف|أفهم|يعمل|أرى|أستطيع|أتذكر|يوجد|تعمل)|çalışmıyor|bilmiyorum|anlamıyorum",
)
"""Reports and small talk with the same words. They are taken out before `STRONG` and `RULE` are looked for."""

# --- rules in messages that are short enough to be an order

RULE = _pattern(
    english=_LEAD
    + r"(?:use|prefer|keep|stick|follow|(?:answer|reply|respond|speak|talk|write|comment|explain) (?:only |always |just |to me |everything |it )?(?:in|with|as|briefly|concisely|like|using)|limit|leave|stay|treat|ask (?:me|first|before|for|if|when|[.])|wait (?:for|until)|name (?:the|all|every|it|them)|call (?:me|it|them|the|us)|prefix|quote|only|just use|address me|write \S+(?: \S+){0,6} in|format|indent|no [a-z]\S*|not? (?:a|any|one|single)"
    r"|(?:explain|describe|present|show|teach|tell) (?:\S+ ){0,5}?(?:like|as if|as though)|nothing (?:is to|is|gets?|else|exotic|fancy|from|in|outside|may|should|must|can|goes|but|more)|nobody|(?:everything|anything|all|every|each|any) (?:[a-hj-z]\S*|in|is) (?:[^ ,]+ ){0,8}(?:must|should|has|have|needs?|goes?|gets?|stays?|is|are|be|in|to|may|ends?|starts?|uses?|under|with|without)|exclude|hold off|double-check|respect|obey|comply|adhere|restrict|skip|mention|cite|round|be (?:brief|concise|careful|polite|strict|honest|terse|short|formal|consistent|explicit))[ ,]"
    + "|"
    + _words(
        r"must|(?:with|on|after|before|for|in|at) (?:every|each|any|all) \S+|should|shouldn't|ought to|has to|have to|needs to|need to be|required|forbidden|prohibited|allowed|permitted|mandatory|optional|preferred|only (?:use|allow|for|in|on|when|if|after|the|once|one|two|\d\S*|with|by|from)|(?:can't|cant|cannot|can not) (?:use|rely|depend|touch|upgrade|install|exceed|afford|ship|leave|have)|as soon as|or not at all|at most|at least|no more than|no longer than|no less than|no later than|not more than|max|maximum|min|minimum|up to \d\S*|not exceed|exceeds?|before you \S+|(?:one|two|three|\d+) \S+ per|per (?:file|line|page|class|module|answer|reply|commit|pr|message|function|day|week|month|request)|whenever|every time|each time|any time|by default|unless|exclusively|strictly|whatsoever|no exceptions|for everything|everywhere|throughout|across the board|consistently|please (?:no|not)|not (?:a single|one)|limit|limited to|(?:goes|go|lives?|belongs?|stays?|remains?|lands?|gets?) (?:in|into|to|on|onto|under|next|with|at|a|an|the|through|out|first|last|before|after|above|below|as|no|its|their|one)|no longer|any more|anymore|not any longer|stays out|backwards[- ]compatible|backward[- ]compatible"
    ),
    others=_LEAD_ELSEWHERE
    + r"(?:bevorzuge|verwende|benutze|nutze|nimm|halte?|vermeide|schreibe?|antworte|sprich|rede|lass|behalte|kein\S*|nichts|nur|alle|jede\S?|utilise[rz]?|évite[rz]?|garde[rz]?|réponds|répondez|écris|écrivez|préfère|respecte[rz]?|limite[rz]?|laisse[rz]?|pas d[e']\S*|aucune?|seulement|tous|toutes|chaque"
    r"|usa|use|usad|utiliza|evita|mantén|mantenga|responde|contesta|escribe|prefiere|respeta|limita|deja|nada de|sin|todos?|todas?|cada|solo|sólo|usate|mantieni|rispondi|scrivi|preferisci|rispetta|lascia|niente|nessun[ao]?|tutti|tutte|ogni|solo|evite|mantenha|mantém|responda|escreva|prefira|respeite|deixe|nenhuma?|sem|só"
    r"|gebruik|vermijd|houd|hou|schrijf|antwoord|geen|niets|alleen|alle|elke?|laat|używaj|unikaj|trzymaj|pisz|odpowiadaj|żadn\S+|tylko|wszystkie|każd\S+|bez|stosuj|używajmy|используй|используйте|пиши|пишите|отвечай|отвечайте|держи|держись|избегай|соблюдай|никаких|ничего|только|все|всё|каждый|каждая|каждое|без|оставь|придерживайся)[ ,]"
    + "|"
    + _words(
        r"nie|immer|nicht|muss|müssen|musst|soll|sollst|sollen|sollte|sollten|darf|darfst|dürfen|höchstens|mindestens|maximal|minimal|erlaubt|stets|pflicht|ausschließlich|vorher|nachher|gehört|gehören|ausnahmslos|spätestens|fasse?|rühre?|keine?[nrms]?"
        r"|doit|doivent|dois|devez|devrait|faut|obligatoire|au maximum|au plus|au moins|maximum|limite|autorisée?s?|défendu|exclusivement|seulement|évite|avant (?:de|chaque|tout)|après chaque"
        r"|debe|deben|debes|debería|hay que|tiene que|tienen que|tienes que|obligatorio|como máximo|máximo|al menos|como mínimo|mínimo|límite|únicamente|solamente|permitido|antes de|después de cada|excepto"
        r"|deve|devono|devi|dovrebbe|bisogna|occorre|va (?:usato|scritto|fatto)|vanno|obbligatorio|al massimo|massimo|almeno|limite|unicamente|esclusivamente|permesso|prima di|dopo ogni|tranne"
        r"|deve|devem|precisa|tem que|têm que|obrigatório|no máximo|máximo|pelo menos|no mínimo|limite|unicamente|exclusivamente|permitido|antes de|depois de cada|exceto|só"
        r"|geen|niet|moet|moeten|mag|mogen|hoort|verplicht|hoogstens|maximaal|minimaal|ten minste|minstens|toegestaan|uitsluitend|enkel|voordat|na elke|behalve"
        r"|musi|muszą|musisz|powinien|powinna|powinno|powinny|należy|trzeba|można|obowiązkowe|obowiązkowo|maksymalnie|co najwyżej|co najmniej|minimum|dozwolone|jedynie|przed każdym|po każdym|oprócz"
        r"|должен|должна|должно|должны|надо|нужно|следует|можно|максимум|не более|не больше|не менее|минимум|как минимум|лимит|разрешено|допускается|строго|перед каждым|после каждого|кроме|лишь"
        r"|gerek|gerekir|gerekiyor|lazım|lütfen|en fazla|en çok|en az|sınır|limit|izin|serbest|her \S+(?:dan|den|tan|ten) önce|her|hep|tüm|kullan|yaz|yap|tut|bırak|olsun|olmasın|kalsın|yok|hiç|hiçbir|mutlaka|şart|hariç"
        r"|يجب|ينبغي|لازم|لا بد|استخدم|استعمل|اكتب|تجنب|احتفظ|اترك|أجب|رد|على الأكثر|كحد أقصى|على الأقل|الحد الأقصى|مسموح|إلزامي|كل|جميع|قبل كل|بعد كل|بدون|دون|إلا|حصريا|حصرًا|لا"
        r"|चाहिए|अवश्य|ज़रूर|जरूर|होना|रखें|रखो|रखना|करें|करो|करना|लिखें|लिखो|लिखना|प्रयोग|इस्तेमाल|उपयोग|अधिकतम|ज़्यादा से ज़्यादा|ज्यादा से ज्यादा|कम से कम|सीमा|अनुमति|नहीं|न|हर|सभी|प्रत्येक|से पहले|के बाद|बिना|दें|देना|दो"
    )
    + r"|请|請|应该|應該|应当|應當|需要|最多|至少|不超过|不超過|以内|以內|上限|只|仅|僅|不可|不用|每个|每個|每次|所有|全部|都用|都要|一直|保持|使用|采用|遵守|避免|尽量|盡量|除非|之前(?:先|要|必)?|不再|别|別|勿|用(?:中文|英文|英语|日语)"
    + r"|ください|下さい|べき|以内|まで(?:に|とする)|最大|最低|以上|以下|だけ|のみ|すること|する事|とする|して(?:ね|ほしい|欲しい|くれ|おいて)|統一|使って|使う|書いて|答えて|避けて|なし(?:で|に)|せず|ずに|ないで|全て|すべて|毎回|でお願い"
    + r"|세요|십시오|해 ?줘|해 ?주|하자|할 것|말 것|최대|최소|이내|이하|이상|까지|만 (?:사용|써|쓰|허용)|으로만|로만|에만|모든|매번|마다|전에|없이|써 ?줘|쓰세요|사용해|작성해|답해|대답해|유지해|지켜|말고|않도록|없어야",
)

# --- changes

AGAIN = _phrases(
    r"again|any more|anymore|no longer|any longer|not any longer|after all|instead|now|from now on|from here on|switch(?:ed|ing)?(?: over)? (?:back )?to|chang(?:e|ed|ing) (?:it |that |this |back )?(?:to|from)|move to|moved to|back to|make (?:it|that)|on second thought|changed my mind|change of plan|change of plans|thinking again|rethinking|actually|update|updated|correction|scratch that|forget|rather|let's drop|raise|raised|lower|lowered|increase|increased|reduce|reduced|bump|bumped|cut|extended|on reflection|come to think of it|having thought (?:about it|it over)|starting (?:today|now|tomorrow|next \S+)|these days|turns out|turned out|swap(?:ped|ping)?|too (?:much|many|few|long|short|small|big|large|little|high|tight|terse|strict|loose)|lifted|henceforth|convert(?:s|ed)? \S+(?: \S+){0,5} to|doesn't (?:suit|work for)|does not (?:suit|work for)|inconvenient|new (?:limit|rule|deadline|budget|plan|port|name|address|version|target|number)|wait",
    r"|passt (?:mir |uns )?nicht|ne (?:me |nous )?convient pas|no me viene bien|non va bene|não dá|niet uit|nie pasuje|неудобно|не подходит|uygun değil|nicht mehr|kein\S* \S+ mehr|wieder|doch|doch lieber|stattdessen|ab jetzt|ab sofort|jetzt|nun|von nun an|lieber|umstellen|wechseln|wechsle|geändert|erhöht|gesenkt|verschoben|verlängert|verkürzt|ändere|neu|neue[rs]?|inzwischen|mittlerweile|statt|anstatt|künftig|anders überlegt|umentschieden|verlegt|zu (?:viel|viele|wenig|wenige|lang|kurz|klein|groß|knapp)"
    r"|ne \S+ plus|n'\S+ plus|plus de|plus besoin|plutôt|finalement|désormais|maintenant|à nouveau|de nouveau|au lieu de|dorénavant|passe[rz]? à|passons à|en fait|nouvelle?|nouveau|passe(?:nt|rons)? (?:au|en)|changé d'avis|changement de (?:plan|programme)|trop (?:peu|long|court|petit|grand)|décalée?|reportée?"
    r"|ya no|más bien|mejor|finalmente|ahora|de nuevo|otra vez|en vez de|en lugar de|a partir de ahora|cambia(?:mos|r)? a|pasa(?:mos|r)? a|al final|en realidad|nuevo|nueva|vuelve a|volver a|cambi(?:ado|é|amos) de (?:idea|opinión|planes)|cambio de planes?|cambi(?:amos|emos|a) (?:la|el|los|las)|sube|bajad?|subimos|bajamos|demasiad[oa]s?"
    r"|non \S+ più|non più|niente più|più nessun|piuttosto|alla fine|adesso|ora|di nuovo|invece|d'ora in poi|passa a|passiamo a|in realtà|nuovo|nuova|meglio|anzi|cambiato idea|cambio di (?:programma|piano)|ripensandoci|ci ho ripensato|facciamo|tropp[oaie]|spostat[oa]"
    r"|não \S+ mais|já não|não mais|melhor|afinal|agora|de novo|novamente|em vez de|a partir de agora|mude para|mudar para|mudamos para|na verdade|novo|nova|pensando bem|mud(?:ei|ámos|amos) de (?:ideia|planos)|mudança de planos|passou (?:para|a)|demais"
    r"|niet meer|geen \S+ meer|toch|liever|in plaats van|vanaf nu|voortaan|nu|weer|opnieuw|eigenlijk|stap over|nieuwe?|bij nader inzien|bedacht|van gedachten veranderd|doe maar|verzet|te (?:veel|weinig|lang|kort|klein|groot)"
    r"|już nie|nie \S+ już|jednak|zamiast|od teraz|teraz|znowu|znów|ponownie|lepiej|przejdźmy na|przejdź na|zmiana|zmieniam|nowy|nowa|nowe|właściwie|zmieni(?:łem|łam|liśmy) zdanie|zmiana planów|zmieńmy|przenieśliśmy|za (?:dużo|mało|długo|krótko)"
    r"|больше не|уже не|лучше|всё-таки|все-таки|вместо|теперь|снова|опять|отныне|перейдем на|перейдём на|перейди на|на самом деле|новый|новая|новое|передумал|передумала|изменение планов|планы изменились|давай|давайте|перенесли|слишком|мало"
    r"|artık|yine|tekrar|yerine|bundan sonra|şimdi|aslında|vazgeçtim|değiştir|geçelim|geç|yeni|daha iyi|bunun yerine|fikrimi değiştirdim|değiştirelim|ertelendi|alındı"
    r"|بعد الآن|لم يعد|لم تعد|بدلا من|بدلاً من|الآن|مجددا|مجددًا|مرة أخرى|من الآن فصاعدا|من الآن فصاعدًا|في الواقع|غيرت رأيي|الجديد|الجديدة|أصبح|أصبحت"
    r"|अब|अब से|फिर से|दोबारा|के बजाय|की जगह|बदल\S*|दरअसल|असल में|नया|नई|नए",
    r"不再|不用再|改成|改为|改為|改用|改到|改在|改主意|换成|換成|现在|現在|又可以|还是|還是|算了|其实|其實|从现在|從現在|重新|而是|取消|新的|やっぱり|やはり|今後|今は|これから|もう(?:しない|不要|いい)|代わりに|の代わり|変更|に変え|再び|また|実は|新しい|なくなった|気が変わ|増やし|減らし|더 이상|이제|다시|대신|바꾸|바꿔|변경|사실|바뀌|늘려|줄여|옮|새로운|새 |말고",
)
"""Words of change. An entry without one of them changes an older one only if it speaks of the very same thing."""

PERMITS = _phrases(
    r"(?:is|are|it's|be) (?:totally |perfectly |now |also |completely |absolutely )?(?:fine|ok|okay|allowed|permitted|acceptable|alright|all right|possible|good|welcome|optional|unnecessary)(?: again| now| too)?|you (?:may|can|are allowed to|are free to)|we (?:may|can)|feel free to|free to|allowed|permitted|lifted|fine again|ok again|okay again|no objection|i don't mind|i no longer mind|i'm fine with|i'm ok with|i am ok with|no problem with",
    r"|(?:ist|sind) (?:\S+ ){0,2}(?:erlaubt|okay|ok|in ordnung|möglich)|darfst? (?:\S+ ){0,6}wieder|wieder erlaubt|du darfst|kannst (?:\S+ ){0,4}wieder|freigegeben|est (?:de nouveau |à nouveau )?(?:autorisée?|permise?|possible|acceptable)|tu peux|vous pouvez|on peut|está permitido|está bien|permitidos|permitidas|puedes|se puede|permitido|permitida|è (?:di nuovo )?(?:permesso|consentito|ok)|puoi|si può|consentito|va bene|pode|podes|é permitido|está liberado|liberado|permitido|mag (?:\S+ ){0,5}(?:weer|wel)|toegestaan|je mag|można|wolno|dozwolone|możesz|można znowu|можно|разрешено|разрешается|разрешены|можешь|допускается|serbest|olabilir|yapabilirsin|izin var|kullanabilirsin|\S+(?:abilirsin|ebilirsin|abilirsiniz|ebilirsiniz|abilir|ebilir)|مسموح|يمكنك|يمكن|لا بأس|لا مانع|मान्य|अनुमति है|ठीक है|सकते हैं|सकते हो|सकता है|चलेगा",
    r"可以|允许|允許|没问题|沒問題|行了|てもいい|てもよい|ても構|大丈夫|可能です|OK です|okです|許可(?:する|します|され)|[가-힣]도 ?(?:돼|되|됩|괜찮)|허용|괜찮|가능",
)
"""A permission turns a ban."""

WITHDRAWS = _pattern(
    english=r"^ (?:\S+ ){0,5}?(?:cancel|undo|remove|delete|lift|discard|nix|void|skip) (?:about |that |my |the |all |this |those |earlier )+(?:\S+ ){0,6}?(?:rules?|requirements?|constraints?|restrictions?|conditions?|limits?|bans?|preferences?|policy|guidelines?)[ .,!]"
    r"|^ (?:\S+ ){0,5}?(?:forget|ignore|disregard|drop|scrap|retract|revoke|withdraw|take back|i take back|scratch|strike|never mind|nevermind) (?:about |that |my |the |all |both |everything |what |whatever |this |those |earlier )+(?:\S+ ){0,12}?(?:rules?|requirements?|instructions?|constraints?|restrictions?|conditions?|limits?|bans?|preferences?|policy|said|told|asked|mentioned|wrote|request|guideline|wish|part|bit|thing|rule about|about)"
    r"|^ (?:\S+ ){0,5}?(?:cancel|undo|remove|delete|lift|discard|nix|void|skip|forget|ignore|disregard|drop|scrap|scratch) (?:\S+ ){0,3}?(?:what|that|everything|whatever|all) i (?:just |once |had |have |ever )?(?:said|told|asked|wrote|mentioned|wanted|requested|required)[ ]"
    r"| (?:you|we) (?:can|may|could)(?: now| just| also| all| safely)? (?:ignore|forget|skip|drop|omit|disregard|leave out|leave off|do without|dispense with|let go of|stop|quit|retire|ditch)(?: about)? | enough (?:of|with) (?:the|those|that|these|your|all) | (?:can|may|could) (?:go|die|be (?:dropped|skipped|omitted|ignored|removed|left out))(?: now| too)? [.,!]| (?:can|may|could) (?:go|be (?:dropped|skipped|omitted|ignored|removed|left out))(?: now)?[ ]$"
    r"| (?:let (?:it|that|this|them) go|let go of)[ .,!]| (?:(?:don't|doesn't|do not|does not) (?:have|need)(?: to)?|needn't|need not) (?:\S+ ){1,10}(?:any ?more|any longer|after all)[ .,!]| (?:not (?:needed|necessary|required)|no need (?:to|for) (?:\S+ ){1,10}) ?after all[ .,!]"
    r"| no longer (?:wants?|needs?|requires?|insists?|expects?|asks?|cares?) "
    r"| (?:you|we) can stop \S+ing | (?:about|regarding|as for|on) (?:\S+ ){1,10}(?:ignore|forget|drop|scrap|skip|disregard) (?:it|that|this)[ .,!]| no need to (?:\S+ ){1,12}(?:any more|anymore|any longer|now)[ .,!]| (?:forget about \S+|forget (?:about )?(?:the|that|my|what)|never mind (?:the|about|what|that)|nevermind (?:the|about|what|that)|ignore what i|disregard what i|scrap the|scratch the)[ ]"
    r"| (?:you|we) (?:no longer|don't|do not|needn't|need not) (?:have to|need to|need|must) \S+(?: \S+){0,15} (?:any more|anymore|any longer|now)[ .,!]| (?:you|we) (?:no longer (?:have to|need to|need|must)|need not|needn't|don't have to worry about)[ ]"
    r"| (?:rule|requirement|limit|restriction|constraint|ban|condition|policy|preference|guideline|freeze|embargo)s?(?: \S+){0,8} (?:no longer (?:applies|apply|holds?|stands?|counts?|matters?)|(?:is|are) (?:off|gone|lifted|void|obsolete|history|withdrawn|cancelled|canceled|dropped|revoked|over|moot|no longer valid|not needed|dead)|doesn't apply|does not apply|can go|has been lifted)[ .,!]"
    r"| (?:(?:isn't|aren't|is not|are not) (?:necessary|needed|required|relevant|valid) (?:any ?more|any longer)|no longer (?:applies|apply|necessary|needed|required|relevant|valid)|not (?:necessary|needed|required|relevant|valid) (?:any ?more|any longer))[ .,!]"
    r"| (?:(?:doesn't|don't|does not|do not|doesnt|dont|won't|will not) (?:really )?(?:matter|apply|count|hold|bind|exist|concern us)(?: to us| for us| here)? (?:any ?more|any longer|now)|no longer (?:matters?|holds?|counts?|binding|binds?|important|in force|exists?|concerns? us)|(?:is|are) (?:not important|moot|irrelevant|off the table|obsolete|unnecessary|history)(?: any ?more| any longer| now)?|(?:has|have) become (?:moot|irrelevant|obsolete|unnecessary))[ .,!]",
    others=r"| (?:vergiss (?:die|das|den|was|meine|alles)|ignoriere? (?:die|das|den|was|meine)|streiche? (?:die|das|den)|(?:regel|vorgabe|einschränkung|beschränkung|anforderung|wunsch|limit|verbot|bedingung)(?: \S+){0,10} (?:gilt nicht mehr|gelten nicht mehr|entfällt|ist hinfällig|ist aufgehoben|ist vom tisch|kannst du vergessen|kannst du streichen|fällt weg|nehme ich zurück)|gilt nicht mehr|gelten nicht mehr|nicht mehr nötig|nicht mehr notwendig|nicht mehr erforderlich|brauchst? (?:\S+ ){0,8}nicht mehr|musst (?:\S+ ){0,8}nicht mehr|müssen (?:\S+ ){0,8}nicht mehr|(?:kannst|könnt|können|könnten|darfst) (?:\S+ ){0,6}(?:weglassen|vergessen|streichen|ignorieren|sein lassen|auslassen|bleiben lassen|überspringen)|lass (?:die|das|den) (?:\S+ ){0,5}(?:weg|sein|bleiben)|(?:brauchen|brauche|braucht|benötigen) (?:\S+ ){0,8}nicht mehr|kann (?:\S+ ){0,3}weg|ha(?:t|ben) sich erledigt|schluss mit|nicht mehr gefragt|entfällt|entfallen|ziehe ich zurück|ist hinfällig)[ .,!]"
    r"| (?:oublie (?:la|le|les|ce|l'\S+|ma|mon)|oubliez (?:la|le|les|ce)|ignore (?:la|le|les|ce)|laisse tomber (?:la|le|les|ce|l'\S+)|la (?:règle|contrainte|consigne|limite)(?: \S+){0,10} (?:ne s'applique plus|n'est plus valable|est levée|tombe|n'est plus)|ne s'applique plus|n'est plus (?:nécessaire|valable|requis|requise)|plus besoin d\S+|tu n'as plus besoin|n'est plus utile|ne sert plus|(?:tu peux|vous pouvez|on peut) (?:oublier|laisser tomber|ignorer|supprimer|arrêter|sauter|omettre)|on (?:abandonne|laisse tomber|supprime|oublie|arrête)|plus la peine|laisse tomber|oublie|finis? (?:le|la|les)|n'est plus (?:la )?peine)[ .,!]"
    r"| (?:olvida (?:la|el|lo|las|los|mi)|(?:quita|elimina|suprime|anula|cancela|quitemos) (?:la regla|el requisito|la norma|lo de|la restricción|el límite)|(?:puedes|podemos|podéis|pueden) (?:olvidar\S*|ignorar\S*|omitir\S*|saltar\S*|quitar\S*|dejar de|prescindir)|deja de \S+|deja(?:d|mos)? lo de|olvídate de|olvide (?:la|el|lo)|ignora (?:la|el|lo|las|los)|descarta (?:la|el|lo)|(?:la regla|la restricción|el límite|la norma)(?: \S+){0,10} ya no (?:aplica|vale|se aplica|existe)|ya no (?:aplica|se aplica|vale|es necesario|es necesaria|quiero|necesito|necesitamos|se necesita|es obligatori[oa]|importa|hace falta|tienes que|necesitas|hay que))[ .,!]"
    r"| (?:dimentica (?:la|il|lo|quell\S+|ciò|le|i)|scorda\S* (?:la|il|lo|quello)|ignora (?:la|il|lo|quell\S+)|(?:puoi|possiamo|potete) (?:dimenticare|ignorare|omettere|saltare|togliere|lasciar\S*|tralasciare|fare a meno)|(?:togli|elimina|annulla) (?:la regola|il limite|il vincolo)|smetti di|basta con|lascia perdere|lascia perdere (?:la|il|lo|quell\S+)|la regola(?: \S+){0,10} (?:non vale più|non si applica più|decade)|non vale più|non si applica più|non (?:è|serve|occorre|devi|bisogna|c'è bisogno)(?: \S+){0,4} più(?: necessario)?|non è più necessari\S)[ .,!]"
    r"| (?:esqueça (?:a|o|aquel\S|as|os|do|da|que)|esquece (?:a|o|aquel\S)|ignore (?:a|o|aquel\S|as|os)|(?:pode|podes|podemos) (?:deixar|ignorar|esquecer|omitir|pular|tirar|parar)|(?:tira|cancela|remove) a regra|deixa de lado|chega de|esquece|desconsidere (?:a|o)|a regra(?: \S+){0,10} (?:não vale mais|não se aplica mais|caiu)|não vale mais|não se aplica mais|já não (?:é|vale|se aplica)|não (?:é|precisa|precisas|tem que|é necessário)(?: \S+){0,6} mais|não é mais necessári\S)[ .,!]"
    r"| (?:vergeet (?:de|het|die|dat|wat|mijn)|negeer (?:de|het|die|wat)|laat (?:de|die) regel (?:\S+ ){0,6}(?:vallen|los)|laat (?:de|het|die|dat) (?:\S+ ){0,5}(?:zitten|weg|achterwege|vallen|los)|(?:kun|kan|mag) je (?:\S+ ){0,5}(?:weglaten|vergeten|laten zitten|overslaan|schrappen)|je (?:kunt|kan|mag) (?:\S+ ){0,5}(?:weglaten|vergeten|laten zitten|overslaan|schrappen)|mag (?:weg|eruit|vervallen)|genoeg met|(?:regel|eis|beperking|limiet)(?: \S+){0,10} (?:geldt niet meer|vervalt|is van de baan|telt niet meer)|geldt niet meer|gelden niet meer|niet meer nodig|hoeft? (?:\S+ ){0,8}niet meer)[ .,!]"
    r"| (?:zapomnij o|zignoruj|ignoruj|pomiń|odwołuję|(?:możesz|możemy) (?:pominąć|zignorować|zapomnieć|odpuścić|przestać)|daj spokój z|już nie (?:potrzebuję|potrzebujemy|chcę|chcemy)|nie (?:potrzebuję|potrzebujemy|chcę|chcemy) już|rezygnuj(?:emy|ę) z|zrezygnujmy z|dość|(?:zasada|reguła|ograniczenie|wymóg|limit|zakaz)(?: \S+){0,10} (?:już nie obowiązuje|nie obowiązuje|nieaktualn\S|odpada)|już nie obowiązuje|nie obowiązuje już|nie jest już (?:potrzebn\S|wymagan\S)|nie musisz już|już nie musisz|już nie trzeba|nie trzeba już)[ .,!]"
    r"| (?:забудь (?:про|о|об|то|правило|что)|забудьте (?:про|о|об|то|правило)|игнорируй (?:то|правило|что)|отменяю|отмени правило|(?:можешь|можно|можете) (?:больше )?(?:забыть|пропустить|убрать|опустить|игнорировать|не \S+)|(?:можешь|можно|можете) больше не|хватит|перестань|перестаньте|убери (?:правило|требование)|забудь|(?:правило|требование|ограничение|условие|лимит|запрет)(?: \S+){0,10} (?:больше не действует|больше не нужно|отменяется|отменено|снято|снят|не действует|неактуально)|больше не (?:действует|действуют|нужны|нужно|нужна|нужен|надо|требуется|актуально|обязательно)|уже не нужно)[ .,!]"
    r"| (?:\S+(?:ı|i|u|ü|ni|nı|nu|nü) (?:kuralı |kuralını |şartını )?(?:unut|boşver|boş ver|iptal et|görmezden gel|yok say)|kural\S* (?:\S+ ){0,6}(?:artık geçerli değil|geçersiz|kalktı|iptal)|artık geçerli değil|artık gerek yok|gerek kalmadı|artık gerekmiyor|artık \S+ gerek yok|artık \S+ zorunda değilsin|(?:gerek|ihtiyaç|lüzum) (?:yok|kalmadı)|bırakabilirsin|unutabilirsin|atlayabilirsin|vazgeç(?:tim|tik|elim)|kaldır(?:dık|ıldı|alım|abilirsin)|(?:unut|boşver|iptal))[ .,!]"
    r"| (?:انس|إنس|انسى|انسَ|تجاهل|ألغ|ألغِ|إلغاء) (?:\S+)| (?:لم يعد|لم تعد) (?:\S+ ){0,5}(?:مطلوبا|مطلوبًا|مطلوبة|ضروريا|ضروريًا|ضرورية|ساريا|ساريًا|سارية|لازما|لازمًا|قائما|قائمًا|قائمة|ينطبق|تنطبق|هناك حاجة)| (?:يمكنك|يمكننا) (?:تجاهل|نسيان|ترك|حذف) | (?:دعك|دعنا) من | (?:لم نعد|لم أعد|لا نعود) (?:\S+ ){0,4}(?:بحاجة|نريد|أريد|نحتاج|أحتاج) | لا (?:داعي|حاجة) ل| لا (?:داعي|حاجة) (?:\S+ ){0,8}بعد الآن| لا تنطبق (?:\S+ ){0,3}بعد الآن"
    r"| (?:भूल जाओ|भूल जाइए|भूल जाएं|भूल जाएँ|भूल जा|अनदेखा कर\S*|नज़रअंदाज़ कर\S*|रद्द कर\S*|छोड़ (?:दो|दें|दीजिए)|बंद कर\S*|रहने दो|हटा दो|लागू नहीं|ज़रूरत नहीं|जरूरत नहीं|ज़रूरी नहीं|जरूरी नहीं|आवश्यक नहीं|आवश्यकता नहीं)[ .,!।]"
    r"|忘掉|忘记(?:关于|之前|那|我)|忘了(?:关于|之前|那|我)|忽略(?:之前|我|那|关于)|撤回|取消(?:之前|那|关于|这|規則|规则|.{1,20}(?:规则|要求|限制|規則))|(?:规则|規則|要求|限制|规定|規定).{0,12}(?:作废|作廢|取消|不再适用|不再適用|不再有效|无效了|解除|没了)|不再适用|不再需要|不再要求|不用再|不必再|不需要再|無需再|无需再|(?:不需要|不用|不必|无需|無需|没必要|取消).{0,12}了|可以(?:省略|忽略|忘)|省略|别再"
    r"|(?:ルール|規則|制限|指示|条件|制約|件|話|こと)(?:は|を|も)?.{0,14}(?:忘れて|無視して|撤回|取り消|なし(?:で|に)|不要|無効|取りやめ|撤廃|廃止|解除)|もう(?:必要|不要|やらなく|しなく|気にしなく|守らなく|いりません|要りません).{0,8}|もう.{1,20}(?:不要|必要ありません|いりません|必要ない)|は忘れて|必要(?:は|が)?なくなり|必要はもうあり|なくていい|なくてもいい|なくても大丈夫|なくて大丈夫|なくて構|なくても構|する必要はありません|適用されません|(?:不要|必要ありません|必要ない|要りません|いりません|いらない)(?:です|になり|に|。|、| )|省いて|省略して|やめて(?:ください|いい)"
    r"|(?:규칙|제한|조건|지시|요구|말|얘기|이야기|것)(?:은|는|을|를)?.{0,10}(?:잊어|무시|취소|철회|폐지|해제|없던)|더 이상.{0,16}(?:필요|적용|유효|않아도|안 해도)|안 해도 (?:돼|되|됩)|하지 않아도 (?:돼|되|됩)|지 않아도 (?:돼|되|됩)|생략해|빼도 (?:돼|되|됩)|그만|필요 ?없",
)
"""The user takes back something. What it is, says the rest of the sentence."""

TAKES_BACK_LAST = _pattern(
    r"^ (?:(?:no|oh|ok|okay|ah|hm|hmm|sorry|actually|wait|um|uh|oops|nein|ach|non|não|nee|nie|нет|hayır) ,? ?){0,3}(?:, )?(?:scratch that|strike that|forget (?:that|it|this|what i just said|i said that)|never mind(?: that)?|nevermind(?: that)?|ignore that(?: last one| last message)?|disregard that|cancel that|take that back|i take that back|undo that"
    r"|vergiss das|vergiss es|vergiss das wieder|streich das|doch nicht|oublie ça|oublie|laisse tomber|olvídalo|olvida eso|déjalo|lascia perdere|lascia stare|dimenticalo|come non detto|esquece isso|esqueça isso|deixa pra lá|vergeet dat|laat maar|zapomnij o tym|nieważne|забудь|забудь об этом|отбой|boşver|boş ver|unut gitsin|unut bunu|انس ذلك|انس الأمر|भूल जाओ|रहने दो"
    r"|算了|忘了吧|当我没说|當我沒說|やっぱりなし|忘れて|忘れてください|なんでもない|취소|없던 걸로|잊어 ?줘|됐어)[ .!,。！]"
)
"""The user takes back what they said last."""

# --- the other kinds

CORRECTS = _pattern(
    r"^ (?:(?:oh|ah|sorry|wait|hm|hmm|oops|ok|okay|pardon|moment|um|uh) ,? ?)?(?:no [,.!]|no no|nono|nonono|nope|nah|no (?:the|it|it's|that|that's|this|i|i'm|we|you|they|there|not|don't|remove|wait|these|those|he|she|actually|his|her|my|our) |wrong|incorrect|not quite|not exactly|correction|actually|(?:nein|non|não|nee|нет|hayır|nie|नहीं|لا|no) [,،.!]|nein|falsch|korrektur|faux|en fait|rectification|incorrecto|corrección|sbagliato|anzi|correzione|errado|correção|na verdade|fout|onjuist|correctie|eigenlijk|źle|pomyłka|korekta|właściwie|нет|неверно|неправильно|поправка|hayır|yanlış|düzeltme|خطأ|تصحيح|كلا|गलत|ग़लत|सुधार)[ ,.!:]"
    + "|"
    + _words(
        r"(?:that|this|it|which)(?:'s| is| was| are) (?:wrong|incorrect|not right|not correct|not true|not what i|false|a mistake|not quite right|mistaken)|that isn't right|this isn't right|that isn't (?:what|how|correct)|you(?:'ve| have| had|'re having)? (?:got |put )?(?:\S+ ){1,6}(?:backwards|reversed|inverted|upside down|the wrong way)|you(?:'ve| have)? (?:misread|misunderstood|got (?:it|that|this|them|those|(?:\S+ ){1,5}?\S+) (?:wrong|backwards|mixed up|the wrong way)|mixed (?:\S+ ){0,3}up|mistook|mislabell?ed|misquoted|misspelled|misspelt|miscounted|swapped|confused)|(?:the )?wrong way (?:round|around)|back to front|upside down|(?:other|opposite) way (?:round|around)|you(?:'ve| have|'re| are| had)? (?:put|wrote|written|listed|recorded|entered|placed|made|called|named|counted|treated|treating|taken|took|assumed|assuming|used) (?:\S+ ){1,12}(?:, |- )?but|i (?:said|meant|told you|already said|already told|mean)|as i said|like i said|i misspoke|i made a mistake|i was wrong|i mistyped|typo|my mistake|correction|should (?:actually|really) be|should have been|should (?:actually |really )?(?:read|say)|actually it's|actually it is|it's actually|it is actually|is actually|are actually|rather than|not what i (?:asked|said|meant|wanted)|has to be \S+ not"
        r"|stimmt nicht|ist falsch|war falsch|ich sagte|ich habe gesagt|ich meinte|ich meine|nicht richtig|sondern|eigentlich|tippfehler|mein fehler|müsste|c'est faux|pas correct|j'ai dit|je voulais dire|je parlais|c'est plutôt|mais plutôt|es incorrecto|no es correcto|está mal|dije|quise decir|quería decir|sino|me equivoqué|en realidad|è sbagliato|non è corretto|ho detto|intendevo|volevo dire|bensì|mi sono sbagliat\S|in realtà|está errado|não está certo|eu disse|quis dizer|e sim|me enganei|na verdade|is fout|klopt niet|ik zei|ik bedoelde|ik bedoel|maar eigenlijk|to nieprawda|to błąd|mówiłem|mówiłam|powiedziałem|powiedziałam|miałem na myśli|miałam na myśli|a nie|pomyliłem|pomyliłam|это неверно|это неправильно|не так|я сказал|я сказала|я говорил|я говорила|я имел в виду|имела в виду|ошибся|ошиблась|на самом деле|yanlış|demiştim|dedim|demek istedim|kastettim|değil|aslında|هذا خطأ|ليس صحيحا|ليس صحيحًا|قلت|قصدت|أقصد|بل|في الواقع|غلط|गलत है|ग़लत है|मैंने कहा|मेरा मतलब|बल्कि|असल में|दरअसल"
    )
    + r"|不对|不對|错了|錯了|不是.{1,24}(?:是|而是)|我说的是|我說的是|我的意思是|应该是|應該是|更正|纠正|搞错|搞錯|弄错|違います|違う|ではなく|じゃなくて|間違|と言いました|という意味|正しくは|訂正|아니(?:요|라|고|에요|야)|틀렸|잘못|말고|제 말은|내 말은|라고 했|정정|아니, "
)

CONTRASTS = _pattern(
    english=r" (?:,|-|–|—) (?:and |but )?not \S+(?: \S+){0,5} [.!]?\s?$| (?:from|in|on|to|at|via|with|by|for|through|under|into) \S+(?: \S+){0,4} not (?:from|in|on|to|via|with|by|for|through|under|into) \S+| (?:instead of|rather than) ",
    others=r" (?:,|-|–|—|and|but|und|et|y|e|en|a|а) (?:not|nicht|pas|no|non|não|niet|nie|не) \S+(?: \S+){0,5} [.!]?\s?$| (?:instead of|rather than|statt|anstatt|anstelle|au lieu d\S+|plutôt que|en vez de|en lugar de|invece d\S+|piuttosto che|em vez de|ao invés de|in plaats van|zamiast|вместо|yerine|بدلا من|بدلاً من|عوضا عن|के बजाय|की जगह)[ ]|而不是|代替|の代わりに|ではなく|じゃなくて|대신|말고|(?:이|가)? ?아니라",
)
"""X, not Y; X instead of Y."""

DECIDES = _phrases(
    r"let's (?:go|use|do|take|keep|stick|try|make|have|drop|start|stay|call|name|pick|choose|settle|switch|move|leave|put|remove|rename|store|skip|not)|lets (?:go|use|do|take|keep|try|make|start|pick|switch)|we(?:'ll| will| are going to|'re going to) (?:use|go|take|do|keep|stick|call|have|need|ship|deploy|support|drop|switch)|i(?:'ll| will|'m going to| am going to| shall) (?:use|go|take|pick|choose|keep|stick|have)|we shall (?:use|go|take|keep|stick|have|drop|ship)|we(?:'re| are)? (?:drop|dropping|ditch|ditching|scrap|scrapping|move to|moving to|moving everything to|switching to|settling on|doing everything (?:with|in|on|via))|had a vote|voted (?:for|on|to|against)|(?:is|are) out for|go with|going with|went with|go for|opt for|opted for|i (?:chose|choose|pick|picked|decided|select|selected)|we (?:chose|decided|picked|agreed|settled)|decided (?:to|on|that|against)|decision|my choice|i've decided|we've decided|i want to (?:use|go|keep|have|change|exchange|return|cancel|modify|book|upgrade|add|remove|replace|proceed|buy|switch|refund|pay|get)|i(?:'d| would) like (?:to (?:use|go|keep|have|change|exchange|return|cancel|modify|book|upgrade|add|remove|replace|proceed|buy|switch|pay|get|refund|update)|the|a|an|it|my)|i want (?:the|a|an|it|my|both|to do)|i need (?:the|a|an|it|to (?:use|go|change|exchange|return|cancel|modify|book|upgrade|add|remove|replace|buy|switch|refund|pay|get|update))|option (?:\d|[a-d]|one|two|three)|the (?:former|latter|(?:first|second|third|fourth|last)(?: one| option| [.,!;]))|make it|settle on|settled on|take the|approved|agreed on",
    r"|wir nehmen|ich nehme|wir verwenden|wir benutzen|wir nutzen|wir bleiben|wir machen|nehmen wir|machen wir|lass uns|lasst uns|ich habe mich (?:\S+ )?entschieden|wir haben uns|entschieden|entscheide mich|entscheidung|gewählt|wähle|ich möchte|ich will|ich hätte gern\S?|wir gehen mit|dann nehmen|on (?:prend|utilise|va|garde|part|choisit|fait|reste)|prenons|utilisons|allons-y avec|gardons|faisons|partons sur|je (?:choisis|prends|veux|voudrais|souhaite|garde)|j'ai (?:choisi|décidé)|nous avons (?:choisi|décidé)|décidé|vamos con|vamos a usar|usemos|usaremos|utilizaremos|elijo|elegí|escojo|me quedo con|he decidido|hemos decidido|decidí|decidimos|quiero|quisiera|me gustaría|optamos por|hagamos|quedémonos con|andiamo con|usiamo|useremo|prendiamo|prendo|scelgo|ho scelto|ho deciso|abbiamo deciso|decido|voglio|vorrei|teniamo|facciamo|optiamo per|vamos com|vamos usar|usaremos|escolho|escolhi|fico com|decidi|decidimos|quero|gostaria|ficamos com|optamos por|we gaan voor|we gebruiken|we nemen|ik kies|ik neem|ik heb gekozen|gekozen|besloten|laten we|ik wil|ik zou graag|we houden|we doen|wybieram|wybrałem|wybrałam|bierzemy|biorę|użyjmy|użyjemy|zdecydowałem|zdecydowałam|zdecydowaliśmy|decyduję|chcę|chciałbym|chciałabym|idziemy w|zróbmy|zostańmy przy|postawmy na|давай|давайте|выбираю|выбрал|выбрала|выбираем|берём|берем|возьмём|возьмем|будем использовать|решил|решила|решили|остановимся на|остановился|хочу|хотел бы|хотела бы|используем|kullanalım|alalım|seçiyorum|seçtim|tercih ettim|karar verdim|karar verdik|yapalım|gidelim|olsun|istiyorum|ile gidelim|ile devam|لنستخدم|سنستخدم|دعنا|لنختر|اخترت|أختار|قررت|قررنا|سنعتمد|لنعتمد|أريد|أود|هيا|नज़र|चलो|चलिए|चुनता हूँ|चुना|चुनते हैं|तय किया|फैसला|निर्णय|हम \S+ (?:का )?(?:उपयोग|इस्तेमाल|प्रयोग) करेंगे|करेंगे|लेंगे|मैं चाहता हूँ|मैं चाहती हूँ|चाहिए",
    r"就用|我们用|我們用|用.{1,20}吧|选(?:择|用)?|選(?:擇|用)?|决定|決定|定了|采用|採用|我要|我想要|那就|就按|就这样|就這樣|にします|にしましょう|にしよう|でいきましょう|でいこう|で行きましょう|を使いましょう|を使います|を採用|に決め|に決定|を選び|を選択|がいいです|로 하자|으로 하자|로 갈게|로 가자|로 합시다|로 할게|로 하겠|로 결정|을 선택|를 선택|선택할게|선택했|골랐|쓰자|사용하자|원해|원합니다|로 해 ?주",
)

PREFERS = _phrases(
    r"i(?:'d| would) (?:rather|sooner|much rather|prefer|love|like)|(?:rather|sooner) \S+(?: \S+){0,6} than|i do (?:prefer|like|love|hate|dislike|enjoy|appreciate)|it helps(?: me)? (?:when|if|to)|i(?:'d)? (?:prefer|like|love|hate|dislike|favor|favour|enjoy|appreciate it if|would appreciate|can't stand|loathe)|i (?:really |much |generally |usually |personally |strongly )(?:prefer|like|love|hate|dislike)|i'm (?:not )?a (?:big )?fan of|not a fan of|my preference|my favou?rite|preferably|ideally|if possible|would be nice|would be great|would prefer|prefers?|preferred|i don't (?:like|love|care for)|i do not like|rather have|works best for me|suits me|i'm fond of|partial to|keen on|we (?:prefer|like)|nicer if|better if|i would appreciate",
    r"|ich (?:bevorzuge|mag|hätte lieber|würde lieber|finde \S+(?: \S+){0,5} (?:besser|schöner)|hasse|liebe)|mir ist (?:\S+ )?lieber|mir wäre (?:\S+ )?lieber|lieber|am liebsten|bevorzugt|wenn möglich|gefällt mir|je préfère|je préférerais|j'aime|j'aimerais|je n'aime pas|je déteste|de préférence|si possible|plutôt|ma préférence|prefiero|preferiría|me gusta|me gustan|me gustaría|no me gusta|odio|preferiblemente|si es posible|a ser posible|mi preferencia|preferisco|preferirei|mi piace|mi piacciono|mi piacerebbe|non mi piace|odio|di preferenza|se possibile|preferibilmente|prefiro|preferiria|eu gosto|gosto de|gostaria|não gosto|odeio|de preferência|se possível|ik heb liever|ik verkies|liever|ik hou van|ik vind \S+(?: \S+){0,5} (?:fijner|prettiger|beter|mooier)|ik houd niet van|ik hou niet van|bij voorkeur|indien mogelijk|het liefst|wolę|wolałbym|wolałabym|lubię|nie lubię|nie znoszę|najlepiej|preferuję|jeśli to możliwe|w miarę możliwości|предпочитаю|я предпочёл|предпочел бы|предпочла бы|мне нравится|мне больше нравится|мне нравятся|не люблю|люблю|терпеть не могу|желательно|по возможности|лучше|tercih ederim|tercih ediyorum|tercihim|severim|seviyorum|sevmem|sevmiyorum|hoşlanırım|hoşlanmam|mümkünse|daha iyi olur|أفضل|أفضّل|يفضل|أحب|لا أحب|أكره|يعجبني|تفضيلي|إن أمكن|من الأفضل|पसंद|पसंद है|पसंद नहीं|बेहतर|प्राथमिकता|संभव हो तो|अच्छा लगता",
    r"我喜欢|我喜歡|更喜欢|更喜歡|我偏好|偏爱|宁愿|寧願|倾向|傾向|我不喜欢|我不喜歡|我讨厌|最好|希望|比较喜欢|好み|好きです|好きだ|が好き|の方が(?:いい|良い|よい|好き)|のほうが(?:いい|良い|よい|好き)|嫌い|苦手|できれば|なるべく|ほしいです|좋아해|좋아합니다|좋아요|더 좋|선호|싫어|싫습니다|가능하면|되도록|이왕이면|낫습니다|나아요",
)

STATES = _phrases(
    r"my|our|mine|ours|i'm|i am|we're|we are|i live|i work|i use|we use|i have|we have|i run|we run|is called|is named|named|called|is at|is on|is in|is located|lives at|runs on|listens on|running on|hosted (?:on|at)|located at|is|are|was|were|equals|will be|due|deadline|budget|expires|starts on|ends on|belongs to|stands for|means|contact|owner|here is|here's|it's|that's|they're",
    r"|mein\S?|meine\S?|unser\S?|unsere\S?|ich bin|ich heiße|ich wohne|ich arbeite|ich nutze|wir nutzen|ist|sind|heißt|lautet|liegt|läuft|frist|abgabe|steht|mon|ma|mes|notre|nos|je suis|je m'appelle|j'habite|j'utilise|est|sont|s'appelle|se trouve|tourne|échéance|mi|mis|nuestro|nuestra|soy|estoy|me llamo|vivo|uso|es|son|está|están|se llama|corre|plazo|presupuesto|mio|mia|nostro|nostra|sono|mi chiamo|abito|uso|è|si chiama|si trova|gira|scadenza|meu|minha|nosso|nossa|sou|estou|me chamo|moro|é|são|fica|chama-se|se chama|roda|prazo|orçamento|mijn|onze|ons|ik ben|ik heet|ik woon|ik gebruik|zijn|heet|staat|draait|mój|moja|moje|nasz|nasza|nasze|jestem|nazywam się|mieszkam|używam|jest|są|to|nazywa się|znajduje się|działa|termin|budżet|мой|моя|моё|мое|наш|наша|наше|меня зовут|я живу|у меня|у нас|это|называется|находится|работает|срок|дедлайн|бюджет|адрес|номер|порт|сервер|benim|bizim|adım|adresim|numaram|adı|kullanıyorum|kullanıyoruz|adresi|numarası|portu|sürüm|son tarih|bütçe|\S+(?:dır|dir|dur|dür|tır|tir)|رقمي|اسمي|اسم|عنواني|عنوان|رقم|هو|هي|لدي|لدينا|نستخدم|أستخدم|الموعد|الميزانية|منفذ|मेरा|मेरी|मेरे|हमारा|हमारी|हमारे|नाम|पता|है|हैं|हूँ|हूं|समय सीमा|बजट",
    r"我的|我们的|我們的|我是|我叫|我住|我在|我们在|我用|我们用|是|为|為|在|叫|截止|预算|預算|地址|号码|端口|私の|僕の|うちの|私は|です|である|ます|は|締め切り|期限|予算|住所|番号|ポート|제 |내 |우리 |저는|나는|입니다|이에요|예요|이야|은 |는 |마감|예산|주소|번호|포트",
)

REQUESTS = _pattern(
    r"^ (?:(?:ok|okay|hi|hey|hello|and|so|then|also|now|next|great|thanks|cool|please|alright|well|yes|yeah|no|hmm|actually|just|oh) ,? ?){0,3}(?:, )?(?:can|could|would|will|should|shall|may|might|do|does|did|is|are|was|were|has|have|what|why|how|where|when|which|who|whose|any) (?:you|we|i|it|the|this|that|there|they|anyone|somebody|is|are|was|does|do|did|about|come|else|idea|chance|should|can|if|a|an|our|my|your|not|to|kind|way|reason|other)[ ]"
    r"|^ (?:(?:ok|okay|hi|hey|and|so|then|also|now|next|great|thanks|cool|please|alright|well|yes|yeah|just|first|oh) ,? ?){0,3}(?:, )?(?:fix|add|check|look|run|review|create|show|implement|update|remove|commit|push|merge|explain|find|write|make|build|refactor|rename|delete|investigate|debug|test|give|tell|help|analyze|analyse|summarize|open|read|see|try|continue|proceed|start|restart|log|reply|rebase|revert|move|clean|install|generate|get|list|search|compare|set|draft|plan|do|go|let me|take|print|port|migrate|document|convert|extract|download|send|book|cancel|return|exchange|confirm|describe|rewrite|improve|examine|verify|validate|double check|bump|upgrade|wire|have|split|sort)[ ]"
    r"|^ (?:(?:ok|okay|hi|hey|and|so|then|also|now|next|great|thanks|cool|please|alright|well|yes|yeah|just|first|oh) ,? ?){0,3}(?:, )?change (?:[^o ]|o[^f ])"
)
"""Questions without a question mark, and work to be done now: tasks, no rules."""

ASKS = _phrases(
    r"why|what|how|where|when|which|who|whose",
    r"|warum|wieso|weshalb|was|wie|wo|wann|welche[rs]?|wer|pourquoi|comment|quel|quelle|quels|quelles|où|quand|qui|por qué|qué|cómo|cuál|dónde|cuándo|quién|perché|come mai|quale|dove|quando|por que|qual|onde|waarom|hoe|waar|wanneer|welke|dlaczego|jak|gdzie|kiedy|który|почему|зачем|как|где|когда|какой|кто|neden|niye|nasıl|nerede|ne zaman|hangi|kim|لماذا|كيف|أين|متى|هل|क्यों|कैसे|कहाँ|कहां|कब|कौन",
)

# --- short replies

YES = _pattern(
    r"^ (?:(?:oh|ah|great|hm|hmm|well|cool|nice|perfect|thanks|thank you|super|sehr gut|muy bien|bien|so|then|and) ,? ?!? ?){0,2}(?:, )?(?:ok|okay|k|kk|okey|y|yes|yep|yeah|yup|ya|yea|aye|sure|of course|absolutely|definitely|certainly|indeed|exactly|correct|right|that's right|true|agreed|approved|confirmed|i confirm|i agree|affirmative|sounds (?:good|great|fine|perfect|reasonable|right)|looks (?:good|great|fine)|lgtm|go ahead|go for it|go on|do it|do that|do so|do this|please do|please proceed|proceed|ship it|fine|works for me|that works|makes sense|good idea|great idea|let's do (?:it|that|this)|lets do (?:it|that|this)|ok, lets|let's go|lets go|perfect|great|deal|done|by all means|happy with|why not|\+1|make it so|all good|the plan is good|good plan|i like it|i'm in|be my guest"
    r"|ja|jawohl|jo|jep|klar|na klar|natürlich|gerne|genau|richtig|passt|in ordnung|einverstanden|mach (?:das|es|mal|weiter|so)|machen sie das|so machen wir(?: es| das)?|leg los|los geht's|bestätigt|klingt gut|gute idee|abgemacht|oui|ouais|d'accord|bien sûr|vas-y|allez-y|exact|exactement|c'est bon|parfait|ça marche|ça me va|fais(?:-le| ça)|entendu|bonne idée|je confirme|sí|si|claro|claro que sí|vale|de acuerdo|adelante|hazlo|perfecto|correcto|exacto|confirmo|por supuesto|está bien|dale|me parece bien|buena idea|hágalo|va bene|certo|certamente|procedi|fallo|fai pure|d'accordo|esatto|perfetto|confermo|sì|vai|ok va bene|buona idea|mi va bene|sim|pode|pode ser|pode fazer|pode ir|faça|faça isso|faz isso|combinado|certo|claro que sim|com certeza|beleza|perfeito|confirmo|tá bom|está bom|isso|isso mesmo|boa ideia|prima|goed|akkoord|doe maar|doe dat|ga je gang|zeker|natuurlijk|klopt|is goed|lijkt me goed|graag|goed idee|tak|zgoda|dobrze|jasne|oczywiście|zrób to|zrób tak|działaj|pewnie|potwierdzam|dokładnie|brzmi dobrze|może być|świetnie|dobry pomysł|да|хорошо|ладно|давай|давайте|согласен|согласна|конечно|ок|окей|верно|точно|делай|сделай|сделай так|подтверждаю|отлично|идёт|идет|договорились|поехали|звучит хорошо|evet|tamam|olur|peki|elbette|tabii|tabii ki|yap|öyle yap|devam et|aynen|doğru|onaylıyorum|kabul|anlaştık|güzel|harika|yapalım|نعم|أجل|حسنا|حسنًا|تمام|موافق|موافقة|طبعا|طبعًا|بالتأكيد|تفضل|افعل ذلك|نفذ|ماشي|اوكي|أوافق|ممتاز|صحيح|هاँ|हाँ|हां|हा|जी|जी हाँ|जी हां|ठीक|ठीक है|अच्छा|सही|सही है|बिल्कुल|करो|कर दो|कर दीजिए|आगे बढ़ो|आगे बढ़ें|ज़रूर|मंज़ूर|सहमत)[ ,.!।…]"
    r"|^ (?:好(?:的|吧|啊|呀|了)?|可以(?:的)?|行(?:吧|啊)?|是(?:的|啊)?|对(?:的)?|對(?:的)?|没问题|沒問題|同意|确认|確認|就这样|就這樣|没错|嗯+|当然|當然|就这么办|做吧|继续|去做吧|はい|ええ|うん|いいよ|いいね|いいです(?:ね|よ)?|お願いします|お願い|了解(?:です|しました)?|承知(?:しました)?|そうして(?:ください)?|それで(?:お願いします|いい|いきましょう|進めて)|賛成|わかりました|オーケー|進めて(?:ください)?|네|예|응|그래(?:요)?|좋아(?:요)?|좋습니다|맞아(?:요)?|맞습니다|알겠(?:어|습니다|어요)|그렇게 (?:해|하세요|하자|진행)|진행해|해 ?줘|동의|오케이|ㅇㅇ|ㅇㅋ|👍|✅|👌|🆗|🙆|💯)"
)
"""Agreement at the beginning of a reply."""

NO = _pattern(
    r"^ (?:(?:oh|ah|hm|hmm|well|um|uh) ,? ?){0,2}(?:, )?(?:n|no|nope|nah|not (?:yet|now|this|that|really)|don't|do not|please don't|rather not|i'd rather not|negative|absolutely not|of course not|no way|stop|hold on|hold off|cancel|neither|none|never|nein|nee|nö|lieber nicht|noch nicht|bitte nicht|auf keinen fall|lass das|lass es|non|surtout pas|pas encore|pas maintenant|arrête|no, gracias|mejor no|todavía no|aún no|no lo hagas|para|no grazie|meglio di no|non ancora|não|melhor não|ainda não|pare|liever niet|nog niet|doe maar niet|nie|lepiej nie|jeszcze nie|nie rób|нет|не надо|не нужно|не стоит|пока нет|стоп|не делай|hayır|yapma|henüz değil|olmaz|istemiyorum|gerek yok|لا|كلا|ليس بعد|لا تفعل|लेकिन नहीं|नहीं|ना|न|मत करो|अभी नहीं|रहने दो)[ ,.!।…]"
    r"|^ (?:不(?:要|用|行|是|对|對|可以)?|别|別|先不|没有|沒有|不了|いいえ|いや|だめ|ダメ|やめて|やめましょう|しないで|まだ|結構です|아니(?:요|오)?|안 ?돼|하지 ?마|아직|싫어|👎|❌|🚫)"
)
"""Refusal at the beginning of a reply."""

THANKS = _pattern(
    r"^ (?:(?:ok|okay|great|perfect|awesome|super|cool|nice|wonderful|excellent|amazing|alright|yes|no|oh|that's|all) ,? ?!? ?){0,3}(?:, |! )?(?:thank you|thanks|thx|ty|cheers|appreciate it|much appreciated|that's all|that is all|that's everything|that will be all|nothing else|all set|i'm all set|i'm good|bye|goodbye|see you|have a (?:good|great|nice)|you too|danke|vielen dank|merci|gracias|grazie|obrigad[oa]|dank je|bedankt|dank u|dziękuję|dzięki|спасибо|teşekkür\S*|sağ ol|شكرا|شكرًا|धन्यवाद|शुक्रिया|谢谢|謝謝|多谢|ありがとう\S*|どうも|감사\S*|고마워\S*|hi|hello|hey|hallo|guten (?:tag|morgen)|bonjour|hola|ciao|olá|cześć|привет|здравствуйте|merhaba|مرحبا|नमस्ते|你好|こんにちは|안녕\S*)[ ,.!。！]"
    r"|^ (?:谢谢|謝謝|ありがとう|감사|고마워|你好|こんにちは|안녕)"
)

# --- what the agent says

CLOSING_QUESTION = _phrases(
    r"anything else|something else|any(?:thing)? (?:other|more|further) (?:questions?|i can)|any questions|further (?:assistance|help|questions)|how (?:can|may|could) i (?:help|assist)|what (?:can|would you like me to|else can|else would) (?:i )?(?:do|help)|can i help|may i help|what else|what's next|what would you like to do next|what should i do next|have (?:any )?(?:more )?questions",
    r"|was gibt es sonst|sonst noch etwas|noch etwas|kann ich (?:sonst|noch)|autre chose|puis-je vous aider|algo más|en qué puedo|qualcos'altro|posso aiutar\S+|mais alguma coisa|algo mais|posso ajudar|nog iets|iets anders|coś jeszcze|w czym mogę|что-нибудь ещё|чем (?:ещё )?(?:могу|помочь)|başka bir şey|nasıl yardımcı|شيء آخر|كيف يمكنني|कुछ और|और कुछ",
    r"还有什么|還有什麼|其他(?:需要|问题)|他に(?:何か|ご)|더 (?:필요|도와)|다른 (?:것|질문|도움)",
)
"""Questions that only end a conversation."""

PROPOSES = _phrases(
    r"i(?:'ll| will| can| could| would|'d| suggest| recommend| propose|'m going to| am going to| plan| intend| think we should)|we (?:should|could|can)|let's|let me|shall i|should i|want me to|would you like|do you want|proposal|proposed|recommendation|my (?:plan|suggestion|recommendation|proposal)|the plan|plan|next steps?|suggested|option|ready to|if you(?:'d like| want| agree| approve| confirm)|please confirm|confirm|proceed|go ahead|approve|say the word",
    r"|ich (?:würde|werde|kann|könnte|schlage|empfehle|möchte)|mein vorschlag|vorschlag|wir (?:könnten|sollten)|soll ich|nächster schritt|plan|je (?:propose|vais|peux|pourrais|suggère|recommande|ferai)|nous (?:pourrions|devrions)|ma proposition|proposition|puedo|podría|propongo|sugiero|recomiendo|voy a|podemos|mi propuesta|propuesta|posso|potrei|propongo|suggerisco|consiglio|farò|proposta|potremmo|posso|poderia|proponho|sugiro|recomendo|vou|podemos|proposta|ik (?:stel|kan|zal|zou|ga|raad)|voorstel|we kunnen|mogę|mógłbym|proponuję|sugeruję|polecam|zamierzam|propozycja|zrobię|я (?:предлагаю|могу|мог бы|рекомендую|сделаю|собираюсь)|предлагаю|предложение|рекомендую|могу|план|öneririm|öneriyorum|önerim|yapabilirim|öneri|\S+(?:acağım|eceğim|abilirim|ebilirim)|plan|أقترح|اقتراحي|يمكنني|سأقوم|سوف|أنصح|الخطة|اقتراح|सुझाव|मैं \S+ सकता|मैं \S+ सकती|करूँगा|करूंगा|करूँगी|करूंगी|प्रस्ताव|योजना",
    r"建议|建議|提议|提議|我(?:可以|会|將|将|打算|来|来)|方案|计划|計劃|提案|おすすめ|お勧め|推奨|しましょう|ましょうか|できます|するつもり|予定です|案|제안|추천|하겠습니다|할게요|할까요|할 수 있|계획|권장",
)

# --- polarity

NEGATES = _phrases(
    r"never|not|no|don't|dont|doesn't|won't|can't|cannot|mustn't|shouldn't|isn't|aren't|without|avoid|stop|stops|quit|forbidden|prohibited|banned|off-limits|off limits|refrain|none|nothing|nobody|hands off|neither|nor|leave|exclude|drop|disable|ban|away|hate|dislike|untouched|skip|skips|skipped|omit|omits|instead of",
    r"|nicht|nie|niemals|kein\S*|nichts|ohne|verboten|tabu|vermeide|stopp|untersagt|ne|n'\S+|pas|jamais|aucune?|sans|interdite?s?|évite[rz]?|rien|nunca|jamás|sin|ningún|ninguna?|prohibid[oa]s?|evita|evite|nada|tampoco|non|mai|senza|nessun[ao]?|vietat[oa]|niente|não|sem|nenhuma?|proibid[oa]s?|niet|nooit|geen|zonder|verboden|vermijd|niets|nie|nigdy|bez|żadn\S+|zakaz\S*|zabronion\S+|unikaj|не|нет|никогда|нельзя|без|никаких|запрещен\S*|избегай|ни|asla|değil|yok|hiçbir|yasak|hiç|sakın|olmadan|لا|لن|لم|ليس|بدون|دون|ممنوع|أبدا|أبدًا|تجنب|يمنع|يُمنع|محظور|नहीं|मत|न|बिना|मना|कभी नहीं",
    r"不|别|別|勿|没|沒|禁|无|無|非|ない|なし|せず|ずに|禁止|ません|だめ|ダメ|ぬ|안 |않|못|말고|지 ?마|지 ?말|없|금지|アウト",
    turkish=r"\S+(?:ma|me|mayın|meyin|mayalım|meyelim|mamalı|memeli|masın|mesin|maz|mez|madan|meden)",
)

FIRST_PERSON = _phrases(
    r"(?:my|our) \S+(?: \S+){0,5} (?:is|are|was|will be|ends|starts|runs|lives|has)|(?:i'm|i am|we're|we are) (?:on|using|in|from|at|running|based|called|named|a|an|the)|i live|i work|i use|we use|we run|we deploy|we host|we have|we ship|we support|i have (?:a|an|two|three|\d+|only)|i'm [a-z]+ [a-z]+|it is for|it's for|the \S+(?: \S+){0,5} (?:is called|is named|lives|runs|belongs|is at|is due|is located|listens|expires|are in|is in)",
    r"|mein\S? \S+(?: \S+){0,4} (?:ist|sind|lautet|heißt)|unser\S? \S+(?: \S+){0,4} (?:ist|sind|lautet|heißt|läuft|liegt)|ich (?:heiße|wohne|arbeite|nutze|benutze|verwende|bin)|wir (?:nutzen|benutzen|verwenden|haben|sind)|(?:mon|ma|mes|notre|nos) \S+(?: \S+){0,4} (?:est|sont)|je (?:m'appelle|suis|travaille|utilise)|j'(?:habite|utilise)|nous (?:utilisons|avons|sommes)|(?:mi|mis|nuestr[oa]s?) \S+(?: \S+){0,4} (?:es|son|está|están)|me llamo|soy|vivo en|trabajo|usamos|uso|tenemos|(?:il mio|la mia|il nostro|la nostra) \S+(?: \S+){0,4} (?:è|sono)|mi chiamo|abito|lavoro|usiamo|abbiamo|(?:meu|minha|nosso|nossa) \S+(?: \S+){0,4} (?:é|são|fica|está)|me chamo|moro|trabalho|usamos|temos|(?:mijn|ons|onze) \S+(?: \S+){0,4} (?:is|zijn|heet)|ik (?:heet|woon|werk|gebruik|ben)|we gebruiken|wij gebruiken|(?:mój|moja|moje|nasz|nasza|nasze) \S+(?: \S+){0,4} (?:to|jest|są)|nazywam się|mieszkam|pracuję|używamy|używam|mamy|(?:мой|моя|моё|мое|наш|наша|наше|мои|наши) \S+|меня зовут|я (?:живу|работаю|использую|на)|мы (?:используем|на|работаем)|у (?:нас|меня)|(?:benim|bizim) \S+|adım|kullanıyoruz|kullanıyorum|yaşıyorum|çalışıyorum|اسمي|عنواني|رقمي|نستخدم|أستخدم|أعمل|أسكن|لدينا|لدي|(?:मेरा|मेरी|मेरे|हमारा|हमारी|हमारे) \S+(?: \S+){0,8} (?:है|हैं)|हम \S+ (?:का )?(?:इस्तेमाल|उपयोग)",
    r"我(?:的|们的|們的).{1,30}(?:是|在|为|為|叫)|我叫|我住|我们(?:用|在|使用)|我們(?:用|在|使用)|(?:私|僕|うち|弊社)の.{1,40}(?:です|だ|である)|(?:제|내|우리) .{1,40}(?:입니다|이에요|예요|이야|야|다)",
)
"""What somebody says about themselves and what is theirs."""

FAILS = _phrases(
    r"fail|fails|failed|failing|not found|nothing to (?:sync|commit|do|show)|no \S+ (?:\S+ ){0,2}found|warning|broken|breaks|broke|crash|crashes|crashed|crashing|hangs?|error|errors|exception|doesn't work|does not work|not working|isn't working|don't see|not seeing|didn't|wasn't|weird|strange|stuck|slow|missing|wrong|seems|seem|looks like|i think|i guess|i believe|i feel|i wonder|i noticed|i see|apparently|maybe|might|probably|i tried|i just|i got|i get",
    r"|fehler|schlägt fehl|abgestürzt|kaputt|échoue|erreur|plante|falla|error|fallo|errore|non funziona|fallisce|erro|falha|quebrad[oa]|fout|faalt|kapot|błąd|nie działa|ошибка|падает|сломан\S*|не работает|hata|çalışmıyor|bozuk|خطأ|فشل|معطل|त्रुटि|गलती|विफल",
    r"报错|失败|失敗|错误|壊れ|エラー|動かない|오류|실패|안 돼요|에러",
)
"""What reports trouble, or a guess."""

ACTS = _phrases(
    r"do (?:it|this|that|so)|go ahead|go for it|proceed|let's (?:do|go)|lets (?:do|go)|ok,? lets|implement (?:it|this|that)|ship it|make it so",
    r"|mach (?:das|es|mal)|leg los|so machen wir\S*|vas-y|allez-y|fais-le|faisons ça|hazlo|adelante|hagámoslo|fallo|procedi|facciamolo|faça isso|faz isso|pode fazer|vamos fazer|doe (?:het|dat|maar)|ga je gang|zrób to|działaj|zróbmy to|сделай|делай|сделаем|поехали|yap|yapalım|devam et|افعل ذلك|نفذ|تفضل|لنفعل|करो|कर दो|कर दीजिए|आगे बढ़ो|आगे बढ़ें",
    r"做吧|去做|就这么办|就這麼辦|やって|進めて|そうして|해 ?줘|진행|그렇게 (?:해|하)",
)
"""Go ahead: the reply says that something was proposed, whatever words the proposal had."""
