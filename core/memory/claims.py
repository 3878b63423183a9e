"""What a fact claims, as far as words alone tell: about what, and whether for or against it.

This is the rule that decides between an older and a newer fact where no model does, and what bounds the
model where one does. It is narrow on purpose: what it does not recognise stands beside the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.language import detect, folded
from core.memory.facts import MAX_FACT_CHARS, Kind, normal
from core.providers.bm25 import stems


@dataclass(frozen=True, slots=True)
class Claim:
    """`topic` is what can have one value only; two facts of one topic with different values
    cannot both be. One that is `denied` ("no longer lives in Genoa") only takes that value away."""

    topic: str
    value: str
    about: str = ""  # the thing liked or disliked
    denied: bool = False
    eats: str = ""  # the food that a diet says is eaten, in the fact's own word

    def replaces(self, older: Claim) -> bool:
        """Whether this claim, being newer, leaves no room for the older one."""
        if self.topic != older.topic:
            return self._eats_what(older) or older._eats_what(self)
        if self.denied or older.denied:
            return self.denied != older.denied and self.value == older.value
        return self.value != older.value

    def _eats_what(self, other: Claim) -> bool:
        """Whether this diet has what the other one says is not eaten ("I don't eat meat")."""
        return self.eats != "" and (other.topic, other.value) == (f"{ATTITUDE}{self.eats}", DISLIKES)


# Of a score between 0 and 1: what is disliked moves further than what is liked.
LIKED, DISLIKED = 0.1, -0.5
LIKES, DISLIKES = "likes", "dislikes"
ATTITUDE = "attitude:"
DIET = "diet"
IS, IS_NOT = "is", "is not"

_EN_HOW = r"(?:really |absolutely |actually |do |just |also |still |always |now |simply )*"
_EN_WHO = rf"(?:i |we )?{_EN_HOW}"
_EN_END = r"(?: any ?more| any longer| at all| now| again| very much| so much| a lot| the most| after all)*"
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
            rf"{_EN_WHO}(?:(?:don ?t|do not|does not|doesn ?t|never) "
            r"(?:like|love|enjoy|want|eat|drink|care for)"
            rf"|(?:no longer) (?:likes?|loves?|enjoys?|eats?|drinks?)) (?P<about>.+?){_EN_END}",
        ),
        (
            LIKES,
            rf"{_EN_WHO}(?:loves?|likes?|adores?|enjoys?|prefers?|am fond of|m fond of|am crazy about"
            rf"|m crazy about) (?P<about>.+?){_EN_END}",
        ),
        (
            LIKES,
            rf"{_EN_WHO}(?:can |may )?(?:eats?|drinks?|(?:have )?started (?:eating|drinking)"
            r"|(?:a?m|are) (?:eating|drinking)) (?P<about>.+?)(?: again| once more| now)+",
        ),
        (
            LIKES,
            r"(?:yo )?(?:ya |ahora )?(?:(?:vuelvo a|he vuelto a) (?:comer|beber) (?P<about>.+?)"
            r"(?: otra vez| de nuevo| ahora)*"
            r"|(?:como|bebo|puedo comer|puedo beber) (?P<about_2>.+?)(?: otra vez| de nuevo)+)",
        ),
        (
            LIKES,
            r"(?:io )?(?:ora |adesso )?"
            r"(?:ho ripreso a (?:mangiare|bere) (?P<about>.+?)(?: di nuovo| ora| adesso)*"
            r"|(?:mangio|bevo|posso mangiare|posso bere) (?:di nuovo (?P<about_2>.+?)"
            r"|(?P<about_3>.+?)(?: di nuovo)+))",
        ),
        (LIKES, r"我?(?:现在|現在)?(?:又|重新|再次)(?:开始|開始|可以|能)?(?:吃|喝)(?P<about>.+?)了?"),
        (
            LIKES,
            rf"{_KO_WHO} ?(?:이제 ?)?다시 (?!.*(?:안|못) ?[먹마])"
            rf"(?P<about>.+?){_KO_CASE}? ?(?:먹|마시|마셔|마신).*",
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
_EN_NO_MORE = r"(?: any ?more| any longer| now| at all| either)*"
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
            rf"(?:{_EN_I} )?(?:(?:do not|don ?t|no longer) lives? in|(?:a?m|are) no longer living in) "
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
# What a diet names as eaten.
_FOODS = frozenset(("meat", "fish", "carne", "pescado", "pesce", "肉", "鱼", "魚", "고기", "생선"))
_COUNTED = frozenset({"household", "cooks for", "children"})
_BEING = re.compile(
    r"(?:i am|i m|we are|we re|is|am) (?P<not>(?:no longer|not) )?(?:an? |the )?(?P<what>.+?)"
    r"(?P<end>(?: any ?more| any longer| again| now)*)"
)
_NO_MORE = re.compile(r"any ?more|any longer")
_NUMBER = re.compile(r"\d+")
# A word that turns a statement into its opposite, in plain text ("don't" is "don t").
_DENIAL = re.compile(
    r"\b(?:no|not|never|none|without|cannot|cant|dont|wont|\w*n t|can t|nunca|jamas|tampoco|sin|non|mai|senza"
    r"|nicht|kein\w*|nie|ne|pas|jamais|sans)\b|[不没沒别別无無未]|안 |못|않|없|아니"
)
# One word in two spellings, British and American, in plain text: "our" and "re" end as "or" and "er".
_BRITISH = re.compile(
    r"\b(?:(?:col|flav|fav|neighb|hon|hum|od|harb|lab|parl|sav|vap|behavi|arm|rum)our(?=(?:s|ed|ites?"
    r"|ing)?\b)"
    r"|(?:cent|theat|lit|met|fib|kilomet|centimet)re(?=s?\b)|grey\b|yoghurt(?=s?\b)|doughnut(?=s?\b))"
)
_AMERICAN = {"grey": "gray", "yoghurt": "yogurt", "doughnut": "donut"}
_ARTICLES = re.compile(r"^(?:the|an?|any|some|el|la|los|las|un|una|il|lo|i|gli|le|l|del|della) ")


def _words(latin: str, other: str) -> str:
    """An alternative of what Latin words begin with (`_` for a space; `.` ends a word) and of other scripts'
    words, for folded text."""
    starts = "|".join(word.replace("_", r"\s+").replace(".", "(?![a-z])") for word in latin.split())
    return rf"(?<![a-z0-9])(?:{starts})|{'|'.join(other.split())}"


# What always has to hold for a person who says it: a diet, an allergy, what cannot be eaten or done. It tells
# of health or belief, too.
_BINDING = _words(
    "vegan vegetar veggie. pes[ck]etar pescatar halal kosher kasher co?eliac celiach allerg alergi"
    " intoll?eran"
    " diabet insulin glutin gluten lactos lattosio dairy[-\\s]free nut[-\\s]free sugar[-\\s]free fodmap"
    " low[-\\s](?:carb|salt|sodium) keto. asthma asthm asma. asmatic wheelchair crutches silla_de_ruedas"
    " sedia_a_rotelle (?:am|'m|m|im|is|are|'re|legally|partially|colou?r)[-\\s]blind(?!_date|ed|s) deaf"
    " hard_of_hearing visually_impair hearing_(?:loss|impair|aid) cieg[oa]. ciegos. sord[oaie]. ciec[oahi]"
    " non_vedent ipovedent invident"
    " (?:can[\\s']?t|cannot|can_not|don[\\s']?t|doesn[\\s']?t|do_not|does_not|never|not_allowed_to|no_longer)"
    "_(?:eat|drink|have_(?:alcohol|gluten|nuts|milk|dairy)|climb|walk.|see.(?!_the_point)|hear.)"
    " (?:on_a|my)_(?:\\w+_)?diet dieting (?:only|just)_eats? eats?_only"
    " no_(?:puedo_|podemos_|debo_)?(?:como|comer|comemos|bebo|beber|bebemos) a_dieta. (?:mi|la_mia)_dieta."
    " non_(?:posso_|possiamo_|devo_)?(?:mangi|bev|bere) astemi[oaie]. abstemi[oa]",
    "素食 吃素 纯素 純素 清真 忌口 过敏 過敏 不耐 麸质 麩質 乳糖 糖尿 胰岛素 胰島素 哮喘 气喘 氣喘 不吃"
    " 不能吃 吃不了"
    " 不喝 不能喝 轮椅 輪椅 盲人 失明 视障 視障 聋 聾 听障 聽障 节食 節食 减肥 減肥"
    " 채식 비건 할랄 코셔 알레르기 알러지 천식 당뇨 인슐린 유당 글루텐 (?:못|안)\\s?먹 (?:못"
    "|안)\\s?마[시셔신십]"
    " 먹지\\s?(?:않|못|말) 마시지\\s?(?:않|못) 휠체어 시각\\s?장애 청각\\s?장애 맹인 다이어트 금주",
)
_CONSTRAINT = re.compile(rf"{_BINDING}|budget|presupuesto|预算|預算|예산")

# What else a person should be asked about: what the law calls special (GDPR, articles 9 and 10: health,
# belief, politics, unions, origin, sex, genes and biometrics, crime), money, and what opens a door.
_HEALTH = _words(
    "hiv. aids. vih. sida. seropositiv sieropositiv adhd. add. tdah. autis asperger dysle[xc] dislex dislessi"
    " epile[ps] seizure migraine migran emicrani cancer cancro tumou?r stroke. ictus. infart"
    " heart_(?:attack|cond"
    "|dis|prob|fail) blood_(?:pressure|sugar|type|group) (?:tension|presion|pressione)_(?:alta|baja|bassa"
    "|art)"
    " hypertens hipertens iperten cholesterol colesterol arthriti artrit osteopor parkinson alzheimer dement"
    " demenci demenza sclerosis esclerosis sclerosi. crohn colitis colite ibs. thyroid tiroid anaemi anemi"
    " hepatit epatit herpes std. covid pregnan miscarr abort embaraz incinta gravidanz schwanger enceinte"
    " infertil"
    " ivf. menopaus breastfeed contracepti illness ill_with disease disorder syndrome sindrome disab handicap"
    " discapac minusval disabil invalid[oa]? amput paraly paralit prosthe protesis protesi. depress"
    " antidepress"
    " depresi antidepresi deprimid anxiety ansiedad ansia. ansios bipolar schizo esquizo ptsd. panic_attack"
    " mental. mentally. mentale. therap(?:y|ist) terap psychiatr psiquiatr psichiatr psycholog psicolog"
    " suicid"
    " self[-\\s]harm addict adict dipendenza. tossicodip alcoholic alcoholism alcolist rehab sober. anore[xs]"
    " bulimi eating_disorder obes[eio] overweight sobrepeso sovrappeso i_weigh medic pills. prescri surgery."
    " cirugia operad[oa]. operat[oa]. transplant trasplant trapiant chemo quimio dialys dialis pacemaker"
    " marcapasos"
    " hospital ospedal diagnos chronic cronic health salud. salute. enferm malatti malat[oaie]. krank malade."
    " gruppo_sanguigno grupo_sanguineo fingerprint face_id. retina dna. adn. genetic huella_(?:dactilar"
    "|digital)"
    " impronte?_digital[ei]",
    "血压 血壓 心脏病 心臟病 中风 中風 癌 肿瘤 腫瘤 艾滋 愛滋 抑郁 抑鬱 忧郁 憂鬱 焦虑 焦慮 自闭 自閉"
    " 多动症 過動 癫痫 癲癇"
    " 精神科 心理医 心理醫 残疾 殘疾 残障 殘障 身障 怀孕 懷孕 流产 流產 堕胎 墮胎 (?<!毛)病 药 藥 手术"
    " 手術 住院 健康"
    " 诊断 診斷 体重 體重 戒酒 酗酒 血型 指纹 指紋 基因"
    " 혈압 심장병 뇌졸중 (?<![가-힣])암(?:에|이|을|\\s?환자|\\s?진단) 종양 에이즈 우울 불안\\s?장애 공황"
    " 조울 자폐 간질 뇌전증"
    " 정신과 정신병 심리\\s?상담 장애인 장애가 장애를 임신 (?<!세계)유산을 낙태 난임 불임 질병 질환 환자"
    " 병원 병이 수술 약을"
    " 복용 건강 진단 알코올 중독 비만 체중 몸무게 혈액형 지문 유전",
)
_PRIVATE = _words(
    # belief
    "muslim musulm islam christian cristian catholic catolic cattolic protestant ortodoss orthodox evangelic"
    " jew. jews. jewish ebre[oai]. ebrei. judi[oa]s?(?!_verde). hindu sikh. buddh budd?ist religio athei"
    " ateo."
    " atea. agnosti mormon quaker jehovah pray baptis ramadan lent. (?:go_to|attend)_(?:church|mosque|mass"
    "|temple"
    "|synagogue) voy_a_misa vado_a_messa juif juive judisch"
    # politics and unions
    " politic vote. votes. voted. voter. voting. voto. votamos votiamo left[-\\s]wing right[-\\s]wing"
    " socialist"
    " communist comunist fascist anarch anarqui republican. democrat labour_party de_(?:izquierdas|derechas)"
    " di_(?:sinistra|destra). (?:trade|labou?r)_union union_member sindicat sindacat afiliad[oa]_a"
    # sex
    " gay. gays. lesbian lesbic bisex bisess transgender transsex transex transess trans. queer. homosex"
    " omosess"
    " asexual asess non[-\\s]?binar no_binari lgbt sexual sessual schwul. lesbisch"
    # origin
    " ethnic etnia etnic (?:i_am|i'm|im|we_are|we're)_(?:an?_)?(?:black|white|roma|romani|gypsy|latin[oa]"
    "|hispanic"
    "|asian|african|arab|kurd|kurdish|indigenous|mixed[-\\s]race). gitan[oa]s?. zingar sono_(?:rom|ner[oa]"
    "|arab[oa])."
    " soy_(?:negr[oa]|arabe|indigena|latin[oa]). refugee refugiad rifugiat asylum undocumented indocumentad"
    " immigrant inmigrant immigrat"
    # crime
    " prison. prisoner jail convict[ei] criminal felon parole. probation arrest carcel prision. condenad"
    " delito"
    " antecedentes_penales carcere prigione condannat reato precedenti_penali fedina"
    # money
    " salary salaries wage. wages. income debts?. bankrupt mortgage my_loan"
    " earns?_(?:about_|around_|over_|almost_|only_)?[$€£]?\\d deudas? (?:gano|ganamos|cobro)_(?:unos_"
    "|casi_)?[$€£]?\\d"
    " sueldo salario hipoteca stipendio guadagn debit[oi]. mutuo. gehalt. salaire."
    # what opens a door
    " password passcode passwort pin(?:_(?:number|code))?(?:_(?:is|es)|:|\\s*=|\\s+\\d) my_pin.(?!_\\w)"
    " contrasena clave. parola_d'ordine"
    " mot_de_passe credit_card debit_card tarjeta_de_credito carta_di_credito cvv. iban. bank_account"
    " account_number"
    " cuenta_bancaria conto_(?:bancario|corrente) passport_(?:number|no.) pasaporte passaporto"
    " social_security"
    " seguridad_social ssn. dni. codice_fiscale",
    "宗教 佛教 信佛 基督 天主教 穆斯林 伊斯兰 伊斯蘭 回教 道教 无神论 無神論 犹太 猶太 信教 信仰 斋戒 齋戒"
    " 祷告 禱告"
    " 政治 党员 黨員 投票 选举 選舉 工会 工會 同性恋 同性戀 双性恋 雙性戀 跨性别 跨性別 性取向 出柜 出櫃"
    " 少数民族 少數民族 种族 種族 难民 難民 维吾尔 維吾爾 [藏回壮满苗彝]族 坐过牢 坐過牢 坐牢 监狱 監獄"
    " 犯罪 前科 判刑 案底"
    " 月薪 年薪 工资 工資 薪水 收入 债 債 贷款 貸款 破产 破產 密码 密碼 身份证 身分證 护照 護照 信用卡"
    " 银行卡 銀行卡"
    " 账号 帳號"
    " 종교 불교 기독교 개신교 천주교 가톨릭 성당에 교회에 이슬람 무슬림 유대교 유대인 힌두 무신론 신자"
    " 라마단 크리스천"
    " 정치 투표 지지 당원 노조 노동조합 (?<![가-힣])게이(?:다|입|예|이|야|임|라|로|고|\\W|$) 레즈비언"
    " 동성애 양성애"
    " 트랜스젠더 성적\\s?지향 성소수자 인종 민족 난민 조선족 전과 감옥 교도소 범죄 집행유예 체포 월급 연봉"
    " 급여 소득"
    " 빚 대출 파산 비밀번호 주민등록 여권 계좌 신용카드",
)
_SENSITIVE = re.compile("|".join((_BINDING, _HEALTH, _PRIVATE)))


def is_sensitive(fact: str) -> bool:
    """Whether a fact names something that a person should confirm before it is kept."""
    return _SENSITIVE.search(_compared(fact)) is not None


def _compared(text: str) -> str:
    return folded(text).replace("\u2019", "'")


def claim(text: str) -> Claim | None:
    """What a fact claims, or None where these rules cannot say."""
    if len(text) > MAX_FACT_CHARS:
        return None  # a text, and no sentence
    plain = normal(text)
    for topic, denied, pattern in _SLOTS:
        if (match := pattern.fullmatch(plain)) and (told := _told(topic, match, denied=denied)):
            return told
    for value, pattern in _ATTITUDES:
        if match := pattern.fullmatch(plain):
            about = _ARTICLES.sub("", next(filter(None, match.groups())).strip())
            return Claim(f"{ATTITUDE}{_one_spelling(about)}", value, about) if about else None
    if match := _BEING.fullmatch(plain):
        against = match["not"] is not None or _NO_MORE.search(match["end"]) is not None
        return Claim(f"being:{match['what']}", IS_NOT if against else IS)
    return None


def _one_spelling(text: str) -> str:
    return _BRITISH.sub(_american, text)


def _american(found: re.Match[str]) -> str:
    word = found[0]
    if word in _AMERICAN:
        return _AMERICAN[word]
    return word[:-3] + "or" if word.endswith("our") else word[:-2] + "er"


def _told(topic: str, match: re.Match[str], *, denied: bool) -> Claim | None:
    found = match.groupdict()
    value = _ARTICLES.sub("", (found.get("value") or found.get("value_it") or "").strip())
    if topic in _COUNTED:
        value = value if value.isdecimal() else _NUMBERS.get(value, "")
    said, value = value, _SAME.get(value, value)
    if not value:
        return None
    about = value if "{of}" in topic else ""
    of = _one_spelling((found.get("of") or "").strip())
    eats = said if topic == DIET and said in _FOODS else ""
    return Claim(topic.format(of=of), _one_spelling(value), about, denied, eats)


def opposed(text: str, attribute: str) -> list[str]:
    """The topics (`Claim.topic`, a fact's `attribute`) of what this fact may contradict."""
    told = claim(text)
    topics = [attribute] if attribute else []
    if told is not None and told.eats:
        topics.append(f"{ATTITUDE}{told.eats}")
    if told is not None and told.topic in {f"{ATTITUDE}{food}" for food in _FOODS}:
        topics.append(DIET)
    return topics


def kind_of(text: str) -> Kind:
    """What a fact is, by its words."""
    if _CONSTRAINT.search(_compared(text)):
        return "constraint"
    told = claim(text)
    return "preference" if told is not None and told.about else "fact"


def share_a_word(one: str, other: str) -> bool:
    """Whether two facts have a word in common that says something."""
    language = detect(one) or detect(other)
    return bool(stems(one, language) & stems(other, language))


def says_the_same(new: str, old: str, *, whole: bool) -> bool:
    """Whether two facts consist of much the same words (with `whole`: all those of the new one are in the
    old), with the same numbers, and both deny something or neither."""
    language = detect(old) or detect(new)
    some, others = stems(new, language), stems(old, language)
    common = len(some & others)
    if not common or 3 * common < 2 * max(len(some), len(others)) or (whole and common < len(some)):
        return False
    return set(_NUMBER.findall(new)) <= set(_NUMBER.findall(old)) and _denies(new) == _denies(old)


def _denies(text: str) -> bool:
    return _DENIAL.search(normal(text)) is not None


def grounded(fact: str, said: str) -> bool:
    """Whether most words of a fact are words that the person said: what a model made up has none of them."""
    language = detect(said)
    words = stems(fact, language)
    return bool(words) and 2 * len(words & stems(said, language)) >= len(words)


def only_in(fact: str, rest: str, said: str) -> bool:
    """Whether a word of a fact was said, but only in `rest`, which is not to be gone by."""
    language = detect(f"{said} {rest}")
    return bool((stems(fact, language) & stems(rest, language)) - stems(said, language))


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
