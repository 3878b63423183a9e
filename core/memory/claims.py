"""What a fact claims, as far as words alone tell: about what, and whether for or against it.

This is the rule that decides between an older and a newer fact where no model does, and what bounds the
model where one does. It is narrow on purpose: what it does not recognise stands beside the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.language import detect, folded
from core.memory.facts import Kind, normal
from core.providers.bm25 import stems


@dataclass(frozen=True, slots=True)
class Claim:
    """`topic` is what can have one value only; two facts of one topic with different values
    cannot both be. One that is `denied` ("no longer lives in Genoa") only takes that value away."""

    topic: str
    value: str
    about: str = ""  # the thing liked or disliked
    denied: bool = False

    def replaces(self, older: Claim) -> bool:
        """Whether this claim, being newer, leaves no room for the older one."""
        if self.topic != older.topic:
            return False
        if self.denied or older.denied:
            return self.denied != older.denied and self.value == older.value
        return self.value != older.value


# Of a score between 0 and 1: what is disliked moves further than what is liked.
LIKED, DISLIKED = 0.1, -0.5
LIKES, DISLIKES = "likes", "dislikes"
IS, IS_NOT = "is", "is not"

_EN_HOW = r"(?:really |absolutely |actually |do |just |also |still |always |now |simply )*"
_EN_WHO = rf"(?:i |we )?{_EN_HOW}"
_EN_END = r"(?: any ?more| at all| now| again| very much| so much| a lot| the most| after all)*"
_ES_END = r"(?: ya| mas| nada| mucho| en absoluto)*"
_KO_I = "(?:저는|나는|전|난|내가|제가)"
_KO_WHO = f"{_KO_I}?"
_KO_CASE = "(?:을|를|이|가|은|는)"
_IT_END = r"(?: piu| per niente| affatto| molto| tanto)*"

# Texts are compared without accents, case and punctuation ("can't" is "can t"): see `normal`.
_ATTITUDES: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (value, re.compile(pattern))
    for value, pattern in (
        # the negated ones first: "no me gusta" holds "me gusta"
        (
            DISLIKES,
            rf"{_EN_WHO}(?:can ?t|cannot|can not|could ?n ?t) (?:stand|bear|abide|take|eat|drink|tolerate)"
            rf"(?: to eat)? (?P<about>.+?){_EN_END}",
        ),
        (
            DISLIKES,
            rf"{_EN_WHO}(?:hates?|dislikes?|loathes?|detests?|am not fond of|m not fond of|avoids?) "
            rf"(?P<about>.+?){_EN_END}",
        ),
        (
            DISLIKES,
            rf"{_EN_WHO}(?:(?:don t|do not|does not|doesn t|never) "
            r"(?:like|love|enjoy|want|eat|drink|care for)"
            rf"|(?:no longer) (?:likes?|loves?|enjoys?|eats?|drinks?)) (?P<about>.+?){_EN_END}",
        ),
        (
            LIKES,
            rf"{_EN_WHO}(?:loves?|likes?|adores?|enjoys?|prefers?|am fond of|m fond of|am crazy about"
            rf"|m crazy about) (?P<about>.+?){_EN_END}",
        ),
        (
            DISLIKES,
            r"(?:yo )?(?:ya )?(?:no me (?:gustan?|encantan?)|odio|detesto|no (?:soporto|aguanto|como|bebo)"
            rf"|no puedo (?:comer|ver|soportar))(?: ya| mas)? (?P<about>.+?){_ES_END}",
        ),
        (
            LIKES,
            r"(?:a mi )?(?:yo )?(?:me (?:gustan?|encantan?)|adoro|amo|prefiero)(?: mucho)? "
            rf"(?P<about>.+?){_ES_END}",
        ),
        (
            DISLIKES,
            r"(?:a me )?(?:io )?(?:non mi piac(?:e|ciono)|odio|detesto|non (?:sopporto|mangio|bevo|tollero))"
            rf"(?: piu)? (?P<about>.+?){_IT_END}",
        ),
        (
            LIKES,
            r"(?:a me )?(?:io )?(?:mi piac(?:e|ciono)|adoro|amo|preferisco)(?: molto| tanto)? "
            rf"(?P<about>.+?){_IT_END}",
        ),
        (
            DISLIKES,
            r"我?(?:现在|現在|已经|已經)?(?:再也)?(?:很|非常)?(?:不喜欢|不喜歡|不爱|不愛|讨厌|討厭|受不了"
            r"|不吃|不能吃|不喝)"
            r"(?:吃|喝)?(?P<about>.+?)了?",
        ),
        (
            LIKES,
            r"我?(?:现在|現在)?(?:很|非常|最|特别|特別|真的)?(?:喜欢|喜歡|爱|愛|偏爱|偏愛)(?:吃"
            r"|喝)?(?P<about>.+?)",
        ),
        (
            DISLIKES,
            rf"{_KO_WHO} ?(?:이제 ?)?(?:더 ?이상 ?)?(?P<about>.+?){_KO_CASE}? ?(?:정말 |너무 )?"
            r"(?:싫|안 좋아|좋아하지 않|질색|못 ?먹|안 ?먹|못 ?참).*",
        ),
        (
            LIKES,
            rf"{_KO_WHO} ?(?P<about>.+?){_KO_CASE}? ?(?:정말 |아주 |너무 |가장 )?"
            r"(?:좋아|사랑|즐겨).*",
        ),
    )
)
_EN_I = r"(?:i|we)"
_EN_AM = r"(?:(?:i|we) (?:a?m|are|re)|im|am|is)"
_EN_NO_MORE = r"(?: any ?more| now| at all| either)*"
_NOT_A_NAME = (
    r"(?!(?:not|no|pronounced|spel(?:led|t)|written|said|short for|also|hard|difficult|easy|common|rare"
    r"|unusual"
    r"|on|in|too|very|actually|different|changed|mispronounced|often|always|never|with|without|se|no|non"
    r"|con|spesso"
    r"|dif[ií]cil|difficile|la|lo|le)\b)"
)
_A_NUMBER = r"\d+|[a-zéèùì]+|[一二两兩三四五六七八九十]+|[가-힣]{1,2}"
_EN_DIET = r"(?:a |an )?(?:strict |proper )?(?P<value>vegan|vegetarian|pesc[ae]tarian|omnivore|flexitarian)s?"
_ES_DIET = r"(?P<value>vegan|vegetarian|pescetarian|pescatarian|omn[ií]vor)[oa]s?"
_IT_DIET = r"(?P<value>vegan|vegetarian|pescetarian|pescatarian|onnivor)[oaie]"
_KO_DIET = r"(?P<value>비건|채식주의자|채식)"

# What has one value at a time: its name (with `{of}`: of which thing), whether the value is denied, and how
# it is said. Narrow: "my name is pronounced ..." gives no name, "I live in a small flat" no place. Denials
# stand before what they deny. Who works where counts in the person's own words alone ("I work at"): many have
# two jobs, and what a model has put into words is the model's to compare.
_SLOTS: Sequence[tuple[str, bool, re.Pattern[str]]] = tuple(
    (topic, denied, re.compile(pattern))
    for topic, denied, pattern in (
        (
            "name",
            False,
            rf"(?:my (?:full |real |first )?name is(?: now)?|i a?m called) {_NOT_A_NAME}(?P<value>.+)",
        ),
        ("name", False, rf"(?:me llamo|mi nombre es|mi chiamo|il mio nome e) {_NOT_A_NAME}(?P<value>.+)"),
        ("name", False, r"(?:我叫|我的名字是|我的名字叫)(?![了他她你它车車])(?P<value>.{1,12})"),
        ("name", False, r"(?:제|내) 이름은 (?P<value>\S+?)(?:이?라고 .+|입니다|이에요|예요|이야|야|다)?"),
        ("called", False, rf"(?:please )?(?:call me|llamame|chiamami) {_NOT_A_NAME}(?P<value>.+)"),
        (
            "home",
            True,
            rf"(?:{_EN_I} )?(?:(?:do not|don t|no longer) lives? in|(?:a?m|are) no longer living in) "
            rf"(?P<value>.+?){_EN_NO_MORE}",
        ),
        (
            "home",
            False,
            r"(?:i |we )?(?:now )?(?:lives? in|(?:a)?m living in|(?:ha)?ve (?:just )?moved (?:back )?to"
            r"|has moved to"
            rf"|(?:just )?moved (?:back )?to|(?:a)?m based in) (?!an? |my |our "
            rf"|fear\b)(?P<value>.+?){_EN_END}",
        ),
        ("home", True, r"(?:yo )?(?:ya )?no vivo(?: mas)? en (?P<value>.+?)(?: ya| mas)?"),
        (
            "home",
            False,
            r"(?:yo )?(?:ahora )?(?:vivo en|me he mudado a|me mude a) (?!una? |mi )(?P<value>.+?)(?: ahora)?",
        ),
        ("home", True, r"(?:io )?non (?:vivo|abito)(?: piu)? (?:a|in|ad) (?P<value>.+?)(?: piu)?"),
        (
            "home",
            False,
            r"(?:io )?(?:ora |adesso )?(?:vivo|abito|mi sono trasferit[oa]) (?:a|in|ad) (?!una? |un )"
            r"(?P<value>.+?)(?: ora| adesso)?",
        ),
        ("home", True, r"我?(?:现在|現在|已经|已經)?(?:不再?|没有?再|沒有?再)住在(?P<value>.+?)了?"),
        ("home", False, r"我?(?:现在|現在|已经|已經)?(?:住在|搬到了?|搬去了?)(?P<value>.+?)了?"),
        (
            "home",
            True,
            rf"{_KO_WHO} ?(?:이제 |더 ?이상 )*(?P<value>\S+?)에(?:서)?(?:는)? (?:안 살|살지 않|살지 못).*",
        ),
        ("home", False, r"(?:저는|나는|전|난)? ?(?:이제 |지금 )*(?P<value>\S+?)에(?:서)? (?:살|산|거주).*"),
        ("home", False, rf"{_KO_WHO} ?(?P<value>\S+?)(?:으)?로 이사(?:했|왔|갔|해|간|온).*"),
        (
            "employer",
            False,
            rf"{_EN_I} (?:now )?(?:works?|(?:a?m|are) working) (?:at|for) (?!(?:home|nights?"
            rf"|weekends?|noon|fun|free"
            rf"|myself|the moment|\d|an? )\b)(?P<value>.+?){_EN_END}",
        ),
        (
            "job",
            False,
            rf"{_EN_I} (?:now )?(?:works?|(?:a?m|are) working) as (?:an? |the )?(?P<value>.+?){_EN_END}",
        ),
        ("employer", False, r"(?:yo )?(?:ahora )?trabajo para (?P<value>.+?)(?: ahora)?"),
        ("job", False, r"(?:yo )?(?:ahora )?trabajo (?:como|de) (?P<value>.+?)(?: ahora)?"),
        (
            "employer",
            False,
            r"(?:io )?(?:ora |adesso )?lavoro (?:per|presso) (?P<value>.+?)(?: ora| adesso)?",
        ),
        ("job", False, r"(?:io )?(?:ora |adesso )?lavoro come (?P<value>.+?)(?: ora| adesso)?"),
        ("employer", False, r"我(?:现在|現在)?在(?P<value>.+?)(?:工作|上班)了?"),
        ("employer", False, rf"{_KO_I} (?P<value>\S+?)에서 (?:일하|일해|일한|근무).*"),
        ("job", False, rf"{_KO_I} (?P<value>\S+?)(?:으)?로 (?:일하|일해|일한|근무).*"),
        ("diet", True, rf"{_EN_AM} (?:no longer|not) {_EN_DIET}{_EN_NO_MORE}"),
        ("diet", False, rf"{_EN_AM} (?:now |still )?{_EN_DIET}{_EN_END}"),
        (
            "diet",
            False,
            rf"(?:{_EN_I} )?(?:now )?(?:eats?|started eating|(?:a?m|are) eating) (?P<value>meat|fish"
            rf"|everything){_EN_END}",
        ),
        ("diet", True, rf"(?:yo )?(?:ya )?no (?:soy|somos) (?:mas )?{_ES_DIET}(?: ya| mas)?"),
        ("diet", False, rf"(?:yo )?(?:ahora )?(?:soy|somos) {_ES_DIET}(?: ahora)?"),
        (
            "diet",
            False,
            r"(?:yo )?(?:ya |ahora |vuelvo a comer |he vuelto a comer |como |otra vez "
            r"|de nuevo )+(?P<value>carne|pescado|de todo)"
            r"(?: otra vez| de nuevo| ahora)*",
        ),
        ("diet", True, rf"(?:io )?non (?:sono|siamo)(?: piu)? {_IT_DIET}(?: piu)?"),
        ("diet", False, rf"(?:io )?(?:ora |adesso )?(?:sono|siamo) {_IT_DIET}(?: ora| adesso)?"),
        (
            "diet",
            False,
            r"(?:io )?(?:ora |adesso )?(?:mangio|ho ripreso a mangiare)(?: di nuovo| ora| adesso)? (?:la "
            r"|il )?"
            r"(?P<value>carne|pesce|di tutto)(?: di nuovo| ora| adesso)?",
        ),
        (
            "diet",
            True,
            r"我?(?:现在|現在|已经|已經)?(?:不再?|没有?再|沒有?再)(?:是|吃)(?P<value>素食主义者|素食主義者"
            r"|素食者|素|纯素|純素)了?",
        ),
        (
            "diet",
            False,
            r"我?(?:现在|現在)?(?:是|吃)(?:一个|一個)?(?P<value>素食主义者|素食主義者|素食者|素|纯素"
            r"|純素)(?:的|了)?",
        ),
        (
            "diet",
            False,
            r"我?(?:现在|現在)?(?:又|重新|又开始|又開始|开始|開始|再次)?吃(?P<value>肉|鱼|魚)了?",
        ),
        (
            "diet",
            True,
            rf"{_KO_WHO} ?(?:이제 |더 ?이상 )*{_KO_DIET}(?:가|이|은|는)? (?:아니|안 해|하지 않).*",
        ),
        (
            "diet",
            False,
            rf"{_KO_WHO} ?(?:이제 |지금 )*{_KO_DIET}(?:을|를)?(?:입니다|이에요|예요|이야|야|이다|다| 해요?"
            rf"| 한다| 합니다)?",
        ),
        ("diet", False, rf"{_KO_WHO} ?(?:이제 )?다시 (?P<value>고기|생선)(?:를|을)? (?:먹|먹는).*"),
        ("favourite:{of}", False, r"my favou?rite (?P<of>.+?) (?:is|are)(?: now)? (?P<value>.+)"),
        (
            "favourite:{of}",
            False,
            r"mis? (?P<of>.+?) (?:favorit|preferid)[oa]s? (?:ahora )?(?:es|son) (?P<value>.+)",
        ),
        (
            "favourite:{of}",
            False,
            r"(?:il|la|i|le) (?:mi[oae]|miei) (?P<of>.+?) preferit[oaie] (?:ora )?(?:e|sono) (?P<value>.+)",
        ),
        ("favourite:{of}", False, r"我?(?:现在|現在)?最(?:喜欢|喜歡|爱|愛)的(?P<of>.+?)是(?P<value>.+)"),
        (
            "favourite:{of}",
            False,
            r"(?:내가|제가) (?:가장|제일) 좋아하는 (?P<of>\S+?)(?:은|는) (?P<value>\S+?)(?:입니다|이에요"
            r"|예요|이야|야|이다|다)?",
        ),
        ("age", False, r"(?:i a?m|im|am|is) (?P<value>\d{1,3})(?: years old| years of age)?(?: now)?"),
        (
            "age",
            False,
            r"(?:yo )?(?:ya )?tengo (?P<value>\d{1,3}) anos|(?:io )?ho (?P<value_it>\d{1,3}) anni",
        ),
        ("age", False, r"我(?:今年|现在|現在)?(?P<value>\d{1,3})[岁歲]了?"),
        ("age", False, rf"{_KO_WHO} ?(?:올해 )?(?P<value>\d{{1,3}}) ?(?:살|세).*"),
        (
            "household",
            False,
            rf"(?:we are|we re) (?P<value>{_A_NUMBER})(?: people| persons| of us| at table| at home"
            r"| in the family)*",
        ),
        (
            "household",
            False,
            rf"(?:somos|siamo(?: in)?) (?P<value>{_A_NUMBER})(?: (?:personas|persone|en casa|in casa"
            rf"|en la familia|in famiglia|a tavola))?",
        ),
        (
            "household",
            False,
            rf"我(?:们|們)?(?:家|家里|家裡)?(?:一共)?(?:有)?(?P<value>{_A_NUMBER})(?:个|個|口)人",
        ),
        ("household", False, rf"우리(?: 가족| 집)?(?:은|는)? (?P<value>{_A_NUMBER}) ?(?:명|식구).*"),
        ("cooks for", False, rf"(?:{_EN_I} )?cooks? for (?P<value>{_A_NUMBER})(?: people| persons)?"),
        ("cooks for", False, rf"(?:cocino para|cucino per) (?P<value>{_A_NUMBER})(?: personas| persone)?"),
        (
            "children",
            False,
            rf"(?:{_EN_I} )?(?:now )?(?:have|has|ve) (?P<value>{_A_NUMBER}) (?:kids|children|child"
            rf"|kid)(?: now)?",
        ),
        (
            "children",
            False,
            rf"(?:tengo|tenemos) (?P<value>{_A_NUMBER}) (?:hij[oa]s?|ninos?)|(?:ho"
            rf"|abbiamo) (?P<value_it>{_A_NUMBER}) (?:figl\w+|bambin\w+)",
        ),
        ("children", False, rf"我(?:们|們)?(?:现在|現在)?有(?P<value>{_A_NUMBER})(?:个|個)(?:孩子|小孩)了?"),
        (
            "children",
            False,
            rf"{_KO_WHO} ?(?:아이|자녀|애)(?:가|는|들이)? (?P<value>{_A_NUMBER})(?:명)?(?:이)? ?(?:있|이 있"
            rf"|이에|이야|이다).*",
        ),
    )
)
# One value in other words.
_SAME = {
    **dict.fromkeys(("pescetarian", "fish", "pescado", "pesce", "鱼", "魚", "생선"), "pescatarian"),
    **dict.fromkeys(("everything", "meat", "carne", "omnivor", "onnivor", "de todo", "di tutto"), "omnivore"),
    **dict.fromkeys(("肉", "고기"), "omnivore"),
    **dict.fromkeys(("素食主义者", "素食主義者", "素食者", "素", "채식주의자", "채식"), "vegetarian"),
    **dict.fromkeys(("纯素", "純素", "비건"), "vegan"),
}
_NUMBERS = {
    word: str(n)
    for n, words in enumerate(
        (
            *("one una un uno 一 하나 한", "two dos due 二 两 兩 둘 두", "three tres tre 三 셋 세"),
            *("four cuatro quattro 四 넷 네", "five cinco cinque 五 다섯", "six seis sei 六 여섯"),
            *("seven siete sette 七 일곱", "eight ocho otto 八 여덟", "nine nueve nove 九 아홉"),
            "ten diez dieci 十 열",
        ),
        1,
    )
    for word in words.split()
}
_COUNTED = frozenset({"household", "cooks for", "children"})
_BEING = re.compile(
    r"(?:i am|i m|we are|we re|is|am) (?P<not>(?:no longer|not) )?(?:an? |the )?(?P<what>.+?)"
    r"(?P<end>(?: any ?more| again| now)*)"
)
_ARTICLES = re.compile(r"^(?:the|an?|any|some|el|la|los|las|un|una|il|lo|i|gli|le|l|del|della) ")

# What always has to hold for a person who says it: a diet, an allergy, what cannot be eaten.
_CONSTRAINT = re.compile(
    r"vegan|vegetar|pescatar|halal|kosher|coeliac|celiac|celiach|allerg|alergi|intoleran|diabet|gluten|lactos"
    r"|lattosio|lactosa|wheelchair|budget|can[' ]?t eat|cannot eat|don[' ]?t eat|do not eat|never eat"
    r"|no puedo comer|no como|non mangio|non posso mangiare"
    r"|素食|吃素|清真|过敏|過敏|不吃|不能吃|糖尿|채식|비건|할랄|알레르기|당뇨|못 ?먹|안 ?먹",
    re.IGNORECASE,
)

# Words that make a fact a sensitive one (health, diet, belief, politics, sexuality, money, secrets).
_SENSITIVE = re.compile(
    r"vegan|vegetar|vegetal|halal|kosher|coeliac|celiac|allerg|alergi|intoleran|diabet|gluten|lactos|lattosio"
    r"|pregnan|embaraz|incinta|illness|disease|disab|cancer|depress|medic|health|salute|salud"
    r"|muslim|musulm|christian|cristian|jewish|ebre[oai]|jud[ií]|hindu|buddh|budist|religio|atheis"
    r"|gay|lesbian|transgender|bisexual|sexual|politic|salary|income|debt|stipendio|salario"
    r"|password|contrase[nñ]a|credit card"
    r"|素食|吃素|清真|过敏|過敏|糖尿|怀孕|懷孕|疾病|宗教|佛教|基督|穆斯林|密码|密碼"
    r"|채식|비건|할랄|알레르기|당뇨|임신|질병|종교|불교|기독교|이슬람|비밀번호",
    re.IGNORECASE,
)


def is_sensitive(fact: str) -> bool:
    """Whether a fact names something that a person should confirm before it is kept."""
    return _SENSITIVE.search(fact) is not None


def claim(text: str) -> Claim | None:
    """What a fact claims, or None where these rules cannot say."""
    plain = normal(text)
    for topic, denied, pattern in _SLOTS:
        if (match := pattern.fullmatch(plain)) and (told := _told(topic, match, denied=denied)):
            return told
    for value, pattern in _ATTITUDES:
        if match := pattern.fullmatch(plain):
            about = _ARTICLES.sub("", match["about"].strip())
            return Claim(f"attitude:{about}", value, about) if about else None
    if match := _BEING.fullmatch(plain):
        against = match["not"] is not None or "any more" in match["end"] or "anymore" in match["end"]
        return Claim(f"being:{match['what']}", IS_NOT if against else IS)
    return None


def _told(topic: str, match: re.Match[str], *, denied: bool) -> Claim | None:
    found = match.groupdict()
    value = _ARTICLES.sub("", (found.get("value") or found.get("value_it") or "").strip())
    if topic in _COUNTED:
        value = value if value.isdecimal() else _NUMBERS.get(value, "")
    value = _SAME.get(value, value)
    if not value:
        return None
    about = value if "{of}" in topic else ""
    return Claim(topic.format(of=(found.get("of") or "").strip()), value, about, denied)


def kind_of(text: str) -> Kind:
    """What a fact is, by its words."""
    if _CONSTRAINT.search(folded(text).replace("’", "'")):
        return "constraint"
    told = claim(text)
    return "preference" if told is not None and told.about else "fact"


def share_a_word(one: str, other: str) -> bool:
    """Whether two facts have a word in common that says something."""
    language = detect(one) or detect(other)
    return bool(stems(one, language) & stems(other, language))


def grounded(fact: str, said: str) -> bool:
    """Whether most words of a fact are words that the person said: what a model made up has none of them."""
    language = detect(said)
    words = stems(fact, language)
    return bool(words) and 2 * len(words & stems(said, language)) >= len(words)


def leaning(texts: Sequence[str], facts: Iterable[str]) -> list[float]:
    """For each text how far it is from what its reader is known to like (above 0) or not (below 0)."""
    wanted: list[tuple[float, frozenset[int], str]] = []
    for fact in facts:
        told = claim(fact)
        if told is not None and told.about:
            weight = DISLIKED if told.value == DISLIKES else LIKED
            wanted += [(weight, stems(told.about, language), language) for language in {detect(fact), ""}]
    if not wanted:
        return [0.0] * len(texts)
    languages = {language for _, _, language in wanted}
    leans = []
    for text in texts:
        words = {language: stems(text, language) for language in languages}
        found = [weight for weight, about, language in wanted if about and about <= words[language]]
        # What is disliked is not made good by something liked in it.
        leans.append(min(found) if min(found, default=0.0) < 0 else max(found, default=0.0))
    return leans
