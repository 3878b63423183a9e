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
    cannot both be."""

    topic: str
    value: str
    about: str = ""  # the thing liked or disliked

    def replaces(self, older: Claim) -> bool:
        """Whether this claim, being newer, leaves no room for the older one."""
        return self.topic == older.topic and self.value != older.value


# Of a score between 0 and 1: what is disliked moves further than what is liked.
LIKED, DISLIKED = 0.1, -0.5
LIKES, DISLIKES = "likes", "dislikes"
IS, IS_NOT = "is", "is not"

_EN_HOW = r"(?:really |absolutely |actually |do |just |also |still |always |now |simply )*"
_EN_WHO = rf"(?:i |we )?{_EN_HOW}"
_EN_END = r"(?: any ?more| at all| now| again| very much| so much| a lot| the most| after all)*"
_ES_END = r"(?: ya| mas| nada| mucho| en absoluto)*"
_KO_WHO = "(?:저는|나는|전|난|내가|제가)?"
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
            r"我?(?:现在|現在|已经|已經)?(?:再也)?(?:很|非常)?(?:不喜欢|不喜歡|不爱|不愛|讨厌|討厭|受不了|不吃|不能吃|不喝)"
            r"(?:吃|喝)?(?P<about>.+?)了?",
        ),
        (
            LIKES,
            r"我?(?:现在|現在)?(?:很|非常|最|特别|特別|真的)?(?:喜欢|喜歡|爱|愛|偏爱|偏愛)(?:吃|喝)?(?P<about>.+?)",
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
_SLOTS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (topic, re.compile(pattern))
    for topic, pattern in (
        ("name", r"(?:my name is(?: now)?|i am called|i m called|call me) (?P<value>.+)"),
        ("name", r"(?:me llamo|mi nombre es|mi chiamo|il mio nome e) (?P<value>.+)"),
        ("name", r"(?:我叫|我的名字是|我的名字叫)(?P<value>.+)"),
        ("name", r"(?:제|내) 이름은 (?P<value>.+?)(?:입니다|이에요|예요|이야|야|다)?"),
        (
            "home",
            r"(?:i |we )?(?:now )?(?:lives? in|(?:a)?m living in|(?:ha)?ve moved to|has moved to|moved to"
            rf"|(?:a)?m based in) (?P<value>.+?){_EN_END}",
        ),
        ("home", r"(?:yo )?(?:ahora )?(?:vivo en|me he mudado a|me mude a) (?P<value>.+?)(?: ahora)?"),
        (
            "home",
            r"(?:io )?(?:ora |adesso )?(?:vivo|abito|mi sono trasferit[oa]) (?:a|in|ad) "
            r"(?P<value>.+?)(?: ora| adesso)?",
        ),
        ("home", r"我?(?:现在|現在)?(?:住在|搬到|搬去)(?P<value>.+?)了?"),
        ("home", r"(?:저는|나는|전|난)? ?(?P<value>\S+?)에(?:서)? (?:살|거주).*"),
    )
)
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
    for topic, pattern in _SLOTS:
        if match := pattern.fullmatch(plain):
            return Claim(topic, match["value"].strip())
    for value, pattern in _ATTITUDES:
        if match := pattern.fullmatch(plain):
            about = _ARTICLES.sub("", match["about"].strip())
            return Claim(f"attitude:{about}", value, about) if about else None
    if match := _BEING.fullmatch(plain):
        against = match["not"] is not None or "any more" in match["end"] or "anymore" in match["end"]
        return Claim(f"being:{match['what']}", IS_NOT if against else IS)
    return None


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
            weight = LIKED if told.value == LIKES else DISLIKED
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
