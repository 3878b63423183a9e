"""How people ask the memory for something in so many words, by language: patterns and nothing else.

English, Spanish, Italian, Chinese and Korean in full; German and French by their commonest phrase. Patterns
are held against text made plain by `core.phrases`: straight apostrophes, half-width signs, one space between
words, what is quoted blotted out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FLAGS = re.IGNORECASE | re.DOTALL


def _any(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, _FLAGS) for pattern in patterns)


def _one_of(text: str) -> str:
    """An alternative of words that are written with spaces between them, `_` for a space within."""
    return "(?:" + "|".join(word.replace("_", r"\s+") for word in text.split()) + ")"


@dataclass(frozen=True, slots=True)
class Rules:
    """One language. `remember` and `forget` have a group `fact`; all are held against a whole sentence."""

    remember: tuple[re.Pattern[str], ...]
    forget: tuple[re.Pattern[str], ...]
    forget_all: tuple[re.Pattern[str], ...]
    listing: tuple[re.Pattern[str], ...]
    own: re.Pattern[str]  # a fact (from its start) in which the person speaks of themselves
    others: re.Pattern[str]  # ... that is about somebody or something else, whatever else is in it
    named: re.Pattern[str]  # for what a model read: the fact in the sentence, whomever it is about
    that: re.Pattern[str]  # a sentence that refers back: "I'm vegan. Please remember that."


# ---------------------------------------------------------------- English

_EN_ASK = (
    r"(?:please\s+|kindly\s+|(?:can|could|would|will)\s+(?:you|u)\s+(?:please\s+|kindly\s+|also\s+){0,3}"
    r"|i(?:'d|\s+would)?\s+(?:want|like|need)\s+you\s+to\s+|you\s+(?:should|must|need\s+to|have\s+to)\s+"
    r"|(?:would|do)\s+you\s+mind\s+|it(?:'s|\s+is)\s+(?:very\s+)?important\s+(?:to\s+|that\s+you\s+)"
    r"|(?:make|be)\s+sure\s+(?:to\s+|you\s+)|let(?:'?s|\s+us)\s+|pl[sz]\s+|also\s+|always\s+){0,4}"
)
_EN_REMEMBER = (
    r"(?:remember(?:ing)?|memori[sz](?:e|ing)|not(?:e|ing)(?:\s+down)?|make\s+a\s+note|take\s+note"
    r"|(?:keep|bear)(?:ing)?\s+(?:(?:that|this|it)\s+)?in\s+mind|(?:do\s+not|don'?t"
    r"|never)\s+(?:ever\s+)?forget)"
)
_EN_FOR = (
    r"(?:\s+about\s+(?:me|us)"
    r"|\s+for\s+(?:later(?:\s+on)?|(?:the\s+)?next\s+time|(?:the\s+)?future|me|us|good))"
)
# "..., so keep that in mind": what refers back to what was said before it.
_EN_BACK = (
    r"(?:(?:so|and|but|please|pl[sz]|kindly|just|always|also)\s+){0,4}"
    r"(?:(?:remember|save|store|note|keep|record|(?:do\s+not|don'?t|never)\s+(?:ever\s+)?forget)"
    r"\s+(?:that|this|it)|(?:keep|bear)\s+(?:that|this|it)\s+in\s+mind"
    r"|(?:make|take)\s+(?:a\s+)?note\s+of\s+(?:that|this|it)|(?:write|note)\s+(?:that|this|it)\s+down)"
    rf"{_EN_FOR}*"
)
_EN_I = r"(?:i|i'\w+|im|ive|my|mine|we|we'\w+|our|ours)\b"
_EN_IN_IT = r"\b(?:i|i'\w+|im|ive|me|my|mine|we|us|our|ours)\b"
_EN_VERB = (
    r"(?:\b(?:is|are|was|were|has|have|had|do|does|can|cannot|could|will|would|must|may|should|needs?|wants?"
    r"|likes?|loves?|hates?|prefers?|eats?|drinks?|lives?|works?|goes|gets?|got|takes?|speaks?|starts?|leaks?"
    r"|sleeps?|costs?|uses?|\w+ed|\w+n'?t)\b|'s\b|[:=\d])"
)
_EN_PEOPLE = _one_of(
    "friends? buddy buddies mates? pals? colleagues? co-?workers? boss manager neighbou?rs? roommates?"
    " flatmates?"
    " housemates? ex ex-\\w+ classmates? teacher landlord landlady clients? customers? doctor mother mom"
    " mum mommy"
    " mummy father dad daddy parents? sisters? brothers? siblings? cousins? aunts? uncles? nephews? nieces?"
    " grand(?:ma|pa|mother|father|parents?) \\w+-in-law"
)
_EN_KNOW = r"(?:know|remember(?:ed)?|stored?|kept|keep|saved?|learn(?:ed|t)?|noted?|have|got)"

ENGLISH = Rules(
    remember=_any(
        _EN_ASK
        + _EN_REMEMBER
        + rf"(?:\s+(?:that|this|the\s+following)|{_EN_FOR})+[\s:,]+(?P<fact>{_EN_I}.+)",
        # Without "that" a thing of mine needs a verb: "remember my login" tells nothing to remember.
        _EN_ASK
        + _EN_REMEMBER
        + rf"[\s:,]+(?P<fact>(?:(?!my\b|our\b|mine\b){_EN_I}.+|(?:my|our|mine)\b(?=.*{_EN_VERB}).+))",
        _EN_ASK
        + rf"(?:save|store|record|(?:write|jot)\s+down)\s+(?:the\s+fact\s+)?that\s+(?P<fact>{_EN_I}.+)",
        # About something else than the person only where the person is in it.
        _EN_ASK
        + rf"(?:remember|note)(?:\s+that|\s*:)\s*(?P<fact>(?=.*{_EN_IN_IT})"
        + r"(?!(?:he|she|they|you|it|this|that|his|her|their|your)\b).+)",
        # "Store this for me: ..."
        _EN_ASK
        + r"(?:save|store|note|record|keep|write|jot)(?:\s+(?:this|that|it|the\s+following))?(?:\s+down)?"
        + rf"{_EN_FOR}*\s*:\s*(?P<fact>{_EN_I}.+)",
        r"(?:(?:(?:you\s+(?:should|must|need\s+to|have\s+to)|i\s+want\s+you\s+to)\s+know"
        rf"|(?:just\s+)?so\s+you\s+know)(?:\s+that)?[\s,:]+)?(?P<fact>{_EN_I}.+?)[\s,;:-]+{_EN_BACK}",
    ),
    forget=_any(
        _EN_ASK + rf"forget\s+(?:that\s+|about\s+)?(?P<fact>{_EN_I}.+)",
        _EN_ASK
        + r"(?:forget|delete|erase|remove)\s+"
        + r"(?:what\s+you\s+(?:know|remember|stored|kept)|your\s+(?:note|memory))"
        + r"\s+(?:about|of|that)\s+(?P<fact>.+)",
        _EN_ASK
        + r"(?:don'?t|do\s+not|stop|no\s+longer)\s+remember(?:ing)?\s+that\s+(?P<fact>.+?)(?:\s+any\s*more)?",
    ),
    forget_all=_any(
        _EN_ASK
        + r"(?:forget|delete|erase|remove|clear|wipe)\s+(?:everything|all|all\s+of\s+it|anything|whatever)"
        + r"(?:\s+(?:that\s+)?you(?:'ve|\s+have)?\s+(?:know|remember(?:ed)?|stored|kept|saved|learned))?"
        + r"(?:\s+(?:about|of)\s+me)?",
        _EN_ASK
        + r"(?:forget|delete|erase|clear|wipe)\s+(?:me|(?:all\s+)?(?:of\s+)?my\s+(?:memories|memory|data"
        + r"|facts))",
    ),
    listing=_any(
        rf"what(?:\s+(?:all|else|exactly|things|facts|info(?:rmation)?|data))?\s+(?:do|did|have)\s+(?:you|u)"
        rf"(?:\s+(?:already|actually|currently|still))?\s+{_EN_KNOW}(?:\s+(?:stored|saved|kept))?"
        r"\s+(?:about|of|on)\s+me(?:\s+(?:so\s+far|already|now))?",
        r"what\s+(?:do\s+(?:you|u)\s+remember|have\s+(?:you|u)\s+remembered|are\s+my\s+memories)",
        r"what(?:'s|\s+is|s)\s+in\s+(?:your|my)\s+memory(?:\s+(?:about|of)\s+me)?",
        r"what\s+(?:have\s+i|did\s+i|i(?:'ve|\s+have)?)\s+(?:ask(?:ed)?|tell"
        r"|told)\s+you\s+to\s+remember(?:\s+(?:about|of)\s+me)?",
        r"do\s+(?:you|u)\s+(?:know|remember)\s+anything\s+about\s+me",
        r"(?:please\s+|(?:can|could)\s+you\s+(?:please\s+)?)?(?:show|list"
        r"|tell)\s+(?:me\s+)?(?:all\s+(?:of\s+)?)?"
        r"(?:my\s+(?:saved\s+)?(?:memories|memory)|(?:everything|all|what|whatever)\s+(?:that\s+)?you(?:'ve"
        r"|\s+have)?\s+"
        r"(?:know|remember(?:ed)?|stored|kept|saved|learned)(?:\s+about\s+me)?)",
        r"(?:everything|all)\s+(?:that\s+)?you\s+(?:know|remember)\s+about\s+me",
    ),
    own=re.compile(rf".*{_EN_IN_IT}", _FLAGS),
    others=re.compile(
        r"(?:the\b(?!.*\b(?:i|i'\w+|me|my|we|us|our)\b)|(?:he|she|they|you|it|this|that|his|her|their|your)\b"
        rf"|(?:my|our)\s+(?:[\w'-]+\s+){{0,2}}?{_EN_PEOPLE}(?:'s)?\b(?!\s+and\s+(?:i|me)\b)"
        r"(?!.*\b(?:i|i'\w+|im|me|us|we)\b)"
        r"|(?:i|we)(?:'ve|\s+have)?\s+(?:just\s+|already\s+|once\s+)?"
        r"(?:asked|told|said|mentioned|talked|spoke|discussed)\b)",
        _FLAGS,
    ),
    named=re.compile(
        r"\b(?:remember|keep\s+in\s+mind|bear\s+in\s+mind|note|save|store|forget)(?:\s+that"
        r"|\s*:)?\s+(?P<fact>.+)",
        _FLAGS,
    ),
    that=re.compile(
        rf"{_EN_BACK}|(?:so\s+|and\s+)?(?:please\s+|pl[sz]\s+|always\s+)*"
        rf"(?:remember|(?:keep|bear)\s+in\s+mind|take\s+note|(?:do\s+not|don'?t)\s+forget){_EN_FOR}*",
        _FLAGS,
    ),
)

# ---------------------------------------------------------------- Spanish

_ES_ASK = (
    r"[¿¡\s]*(?:por\s+favor[,\s]+|porfa[,\s]+|(?:me\s+)?(?:puedes?|podr[ií]as?)\s+|(?:quiero"
    r"|necesito)\s+que\s+"
    r"|me\s+gustar[ií]a\s+que\s+|(?:debes|tienes\s+que)\s+|siempre\s+|es\s+importante\s+que\s+){0,4}"
)
_ES_REMEMBER = (
    r"(?:recuerda|recuerde|recuerdes|recordar(?:as)?|acu[eé]rdate(?:\s+de)?|acu[eé]rdese\s+de|acordarte\s+de"
    r"|te\s+acuerdes\s+de"
    r"|ten(?:ga|gas|er)?\s+(?:en\s+cuenta|presente)|(?:no"
    r"|nunca)\s+(?:te\s+)?olvides(?:\s+nunca)?(?:\s+de)?|no\s+olvide(?:\s+de)?"
    r"|que\s+no\s+se\s+te\s+olvide|(?:anota|apunta|guarda|memoriza)r?|toma(?:r)?\s+nota(?:\s+de)?"
    r"|ten\s+(?:esto|eso)\s+en\s+cuenta)"
)
_ES_FOR = r"(?:\s+para\s+(?:siempre|luego|despu[eé]s|m[aá]s\s+tarde|el\s+futuro|la\s+pr[oó]xima(?:\s+vez)?))"
_ES_HERE = rf"(?:\s+(?:siempre|bien|porfa|por\s+favor)|{_ES_FOR})*"
_ES_BACK = (
    r"(?:y\s+|as[ií]\s+que\s+)?(?:por\s+favor[,\s]+|porfa[,\s]+)?(?:recu[eé]rdal[oa]|recuerda\s+(?:esto|eso)"
    r"|acu[eé]rdate(?:\s+de\s+(?:eso|esto|ello))?|an[oó]tal[oa]|ap[uú]ntal[oa]|gu[aá]rdal[oa]|memor[ií]zalo"
    r"|(?:no|nunca)\s+l[oa]\s+olvides|no\s+te\s+olvides|no\s+se\s+te\s+olvide|toma\s+nota"
    r"|t[eé]nlo\s+(?:siempre\s+)?(?:en\s+(?:cuenta|mente)|presente))"
    rf"{_ES_HERE}"
)
_ES_PEOPLE = _one_of(
    "amig[oa]s? compañer[oa]s? colegas? jef[ea]s? vecin[oa]s? ex madre padre mam[aá] pap[aá] padres"
    " herman[oa]s?"
    " prim[oa]s? t[ií][oa]s? abuel[oa]s? sobrin[oa]s? cuñad[oa]s? suegr[oa]s? profesora? casero clientes?"
)
_ES_ME = r"\b(?:yo|me|mi|mis|m[ií]|m[ií][oa]s?|conmigo|nos|nosotr[oa]s|nuestr[oa]s?)\b"
_ES_HOW = (
    r"(?:(?:yo|no|ya|nunca|siempre|tambi[eé]n|tampoco|s[oó]lo|solamente|ahora|hoy|normalmente|casi)\s+)*"
)
_ES_ABOUT_ME = r"(?:sobre|de|acerca\s+de)\s+m[ií]"

SPANISH = Rules(
    remember=_any(
        _ES_ASK + _ES_REMEMBER + rf"{_ES_HERE}(?:\s*[:,])?\s+que\s+(?P<fact>.+)",
        _ES_ASK + _ES_REMEMBER + rf"(?:\s+(?:esto|lo\s+siguiente))?{_ES_HERE}\s*:\s*(?P<fact>.+)",
        rf"(?P<fact>.+?)[\s,;]+{_ES_BACK}",
    ),
    forget=_any(
        _ES_ASK
        + r"(?:olvida|olvide|olvidar|olv[ií]date\s+de|borra|borrar|elimina)\s+(?:que\s+"
        + r"|lo\s+de\s+que\s+)(?P<fact>.+)",
        _ES_ASK + r"(?:no|ya\s+no)\s+recuerdes\s+(?:m[aá]s\s+)?que\s+(?P<fact>.+)",
        _ES_ASK
        + r"(?:olvida|borra|elimina)\s+lo\s+que\s+sabes\s+(?:sobre|de|acerca\s+de)\s+(?P<fact>mis?\s.+)",
    ),
    forget_all=_any(
        _ES_ASK
        + r"(?:olvida|olvidar|olv[ií]date\s+de|borra|borrar|elimina"
        + r"|eliminar)\s+todo(?:\s+lo\s+que\s+(?:sabes|recuerdas"
        + rf"|has\s+guardado))?(?:\s+{_ES_ABOUT_ME})?",
        _ES_ASK + r"(?:borra|elimina)\s+(?:todos\s+)?mis\s+(?:datos|recuerdos)",
    ),
    listing=_any(
        r"[¿\s]*qu[eé](?:\s+(?:cosas|informaci[oó]n|datos|m[aá]s))?\s+(?:es\s+lo\s+que\s+)?(?:ya\s+)?"
        rf"(?:sabes|sabe(?:\s+usted)?|recuerdas|conoces|has\s+guardado|has\s+memorizado"
        rf"|tienes(?:\s+guardado)?)\s+{_ES_ABOUT_ME}",
        r"[¿\s]*qu[eé]\s+(?:te\s+(?:he\s+pedido|ped[ií])\s+que\s+(?:recuerdes|recordaras)|recuerdas)",
        rf"[¿\s]*(?:sabes|recuerdas)\s+algo\s+{_ES_ABOUT_ME}",
        _ES_ASK
        + r"(?:mu[eé]strame|mostrarme|dime|decirme|ens[eé][nñ]ame|cu[eé]ntame)\s+(?:(?:todo\s+)?lo\s+que"
        + r"|qu[eé])"
        + rf"\s+(?:sabes|recuerdas)(?:\s+{_ES_ABOUT_ME})",
        _ES_ASK + r"(?:mu[eé]strame|ens[eé][nñ]ame|lista)\s+(?:todos\s+)?mis\s+recuerdos",
    ),
    own=re.compile(
        rf"(?:.*{_ES_ME}|{_ES_HOW}(?:soy|estoy|voy|doy|he|s[eé]|fui|\w{{2,}}(?:o|mos|é|í))\b"
        r"(?!\s+(?:no\s+)?(?:es|odia|ama|tiene|vive|come|bebe|prefiere|est[aá]|le)\b))",
        _FLAGS,
    ),
    others=re.compile(
        r"(?:(?:[eé]l|ella|ell[oa]s|usted|ustedes|t[uú]|tus|vosotr\w+|sus?|est[eao]s?|es[eao]s?)\b"
        r"(?!.*\b(?:me|nos|mi|mis|conmigo)\b)"
        rf"|(?:mis?|nuestr[oa]s?)\s+(?:\w+\s+)?{_ES_PEOPLE}\b(?!\s+y\s+yo\b)(?!.*\b(?:yo|me|nos|conmigo)\b)"
        r"|te\s+(?:he\s+)?(?:dije|dicho|pregunt\w+|ped[ií]\w*)\b)",
        _FLAGS,
    ),
    named=re.compile(
        r"\b(?:recu[eé]rd\w+|recordar|acu[eé]rdate|anota|apunta|guarda|cuenta|presente|olvides?)"
        r"(?:\s+de)?(?:\s+que|\s*:)\s+(?P<fact>.+)",
        _FLAGS,
    ),
    that=re.compile(
        _ES_BACK,
        _FLAGS,
    ),
)

# ---------------------------------------------------------------- Italian

_IT_ASK = (
    r"(?:per\s+(?:favore|piacere|cortesia)[,\s]+|ti\s+prego[,\s]+(?:di\s+)?|(?:mi\s+)?(?:puoi|potresti"
    r"|pu[oò]|potrebbe)\s+"
    r"|(?:vorrei|voglio)\s+che\s+(?:tu\s+)?(?:ti\s+)?|devi\s+|[eè]\s+importante\s+che\s+|sempre\s+){0,4}"
)
_IT_REMEMBER = (
    r"(?:ricorda|ricordati|ricordate|ricordatevi|ricordiamo(?:ci)?|si\s+ricordi|ricordare|ricordarti"
    r"|ricordassi"
    r"|(?:tieni|tenga|tenere?|tenessi)\s*(?:a\s+mente|presente|conto|in\s+mente)(?:\s+del\s+fatto)?"
    r"|non\s+(?:ti\s+)?(?:dimentica|scorda)r(?:e|ti)(?:\s+mai)?|(?:memorizza|annota|salva|segna)(?:re)?"
    r"|segna(?:r)?ti"
    r"|prendi\s+nota(?:\s+del\s+fatto)?)"
)
_IT_FOR = r"(?:\s+per\s+(?:sempre|dopo|il\s+futuro|(?:la\s+)?prossima\s+volta|le\s+prossime\s+volte))"
_IT_HERE = rf"(?:\s+(?:sempre|bene|per\s+(?:favore|piacere|cortesia))|{_IT_FOR})*"
_IT_BACK = (
    r"(?:e\s+|quindi\s+)?(?:per\s+(?:favore|piacere)[,\s]+)?(?:ricorda(?:te)?l[oa]|ricordati\s+di\s+questo"
    r"|ricordatene|annota(?:te)?lo|segna(?:te)?lo|salvalo|memorizzalo|prendi(?:ne)?\s+nota"
    r"|ti?eni(?:lo|ne)\s+(?:sempre\s+)?(?:a\s+mente|presente|conto)"
    r"|non\s+(?:dimenticarl[oa]|scordarl[oa]|dimenticartel[oa]|scordartel[oa]|te\s+l[oa]\s+(?:dimenticare"
    r"|scordare)))"
    rf"{_IT_HERE}"
)
_IT_PEOPLE = _one_of(
    "amic[oai] amiche colleg\\w+ capo vicin[oaie] ex madre padre mamma pap[aà] genitori fratell[oi]"
    " sorell[ae]"
    " cugin[oaie] zi[oaie] nonn[oaie] nipot[ei] suocer[oaie] cognat[oaie] coinquilin[oaie] professor\\w*"
    " maestr\\w+"
)
_IT_ME = r"\b(?:io|mi|me|m'\w+|mi[oae]|miei|noi|ci|nostr[oaie])\b"
_IT_HOW = r"(?:(?:io|non|gi[aà]|mai|sempre|anche|solo|ora|adesso|oggi|quasi|di\s+solito)\s+)*"
_IT_ABOUT_ME = r"(?:(?:su|di|riguardo\s+a)\s+(?:di\s+)?me|sul\s+mio\s+conto)"

ITALIAN = Rules(
    remember=_any(
        _IT_ASK + _IT_REMEMBER + rf"{_IT_HERE}(?:\s*[:,])?\s+che\s+(?P<fact>.+)",
        _IT_ASK + _IT_REMEMBER + rf"(?:\s+(?:questo|quanto\s+segue))?{_IT_HERE}\s*:\s*(?P<fact>.+)",
        # "ricordi che ..." alone is what one asks, not what one wants.
        r"(?:per\s+(?:favore|piacere|cortesia)[,\s]+|(?:vorrei|voglio)\s+che\s+(?:tu\s+|lei\s+)?(?:ti\s+"
        r"|si\s+)?)"
        r"ricordi\s+che\s+(?P<fact>.+)",
        rf"(?P<fact>.+?)[\s,;]+{_IT_BACK}",
    ),
    forget=_any(
        _IT_ASK
        + r"(?:dimentica|dimenticare|dimenticati|scorda|scordati|cancella|cancellare)\s+che\s+(?P<fact>.+)",
        _IT_ASK + r"non\s+ricordare\s+(?:pi[uù]\s+)?che\s+(?P<fact>.+)",
        _IT_ASK + r"(?:dimentica|cancella)\s+(?:quello|ci[oò])\s+che\s+sai\s+(?:di|del|della|sul|sulla|su)\s+"
        r"(?P<fact>mi[oae]i?\s.+)",
    ),
    forget_all=_any(
        _IT_ASK
        + r"(?:dimentica|dimenticare|dimenticati|cancella|cancellare|scorda|elimina)(?:\s+di)?\s+tutto"
        + rf"(?:\s+(?:quello|ci[oò])\s+che\s+(?:sai|ricordi|hai\s+memorizzato))?(?:\s+{_IT_ABOUT_ME})?",
        _IT_ASK + r"(?:cancella|elimina)\s+(?:tutti\s+)?i\s+miei\s+(?:dati|ricordi)",
    ),
    listing=_any(
        r"(?:che\s+cosa|che|cosa)\s+(?:ne\s+)?(?:sai|sa|sapete|conosci|ricordi|ti\s+ricordi"
        r"|hai\s+(?:memorizzato|salvato))"
        rf"\s+(?:gi[aà]\s+)?{_IT_ABOUT_ME}",
        r"(?:che\s+cosa|che|cosa)\s+(?:ti\s+ho\s+chiesto\s+di\s+ricordare|ricordi)",
        rf"(?:quali|che)\s+(?:informazioni|dati|cose)\s+(?:hai|sai|conosci|ricordi)\s+{_IT_ABOUT_ME}",
        rf"(?:sai|ricordi)\s+qualcosa\s+{_IT_ABOUT_ME}",
        _IT_ASK
        + r"(?:mostrami|dimmi|dirmi|raccontami|elencami|elenca)\s+(?:tutto\s+)?(?:quello|quel|ci[oò]"
        + r"|cosa)\s+(?:che\s+)?"
        + rf"(?:sai|ricordi)(?:\s+{_IT_ABOUT_ME})",
        _IT_ASK + r"(?:mostrami|elenca)\s+(?:tutti\s+)?i\s+miei\s+ricordi",
    ),
    own=re.compile(
        rf"(?:.*{_IT_ME}|{_IT_HOW}(?:ho|so|do|\w{{2,}}(?:o|iamo))\b"
        r"(?!\s+(?:non\s+)?(?:[eè]|odia|ama|ha|vive|mangia|beve|preferisce|sta)\b))",
        _FLAGS,
    ),
    others=re.compile(
        r"(?:(?:lui|lei|egli|ella|loro|tu|voi|quest[oaie]|quell[oaie])\b(?!.*\b(?:mi|me|ci)\b)"
        r"|(?:(?:il|la|i|le)\s+)?(?:tu[oa]|tuoi|tue|vostr[oaie]|su[oa]|suoi|sue)\b(?!.*\b(?:mi|me|ci)\b)"
        rf"|(?:(?:il|la|i|gli|le|l')\s*)?(?:mi[oae]|miei|nostr[oaie])\s+(?:\w+\s+)?{_IT_PEOPLE}\b"
        r"(?!\s+ed?\s+io\b)(?!.*\b(?:mi|me|io|ci)\b)"
        r"|ti\s+(?:ho\s+)?(?:detto|chiesto|dissi|chiesi)\b)",
        _FLAGS,
    ),
    named=re.compile(
        r"\b(?:ricord\w+|mente|presente|conto|memorizza\w*|annota\w*|salva\w*|segnati|nota|dimenticar\w+"
        r"|scordar\w+)"
        r"(?:\s+del\s+fatto)?(?:\s+che|\s*:)\s+(?P<fact>.+)",
        _FLAGS,
    ),
    that=re.compile(
        _IT_BACK,
        _FLAGS,
    ),
)

# ---------------------------------------------------------------- Chinese

_ZH_ASK = (
    r"(?:请|請|从现在起|從現在起|从现在开始|從現在開始|以后|以後|麻烦|麻煩|拜托|拜託|务必|務必|一定要|一定"
    r"|必须|必須|要|你要|帮我|幫我|给我|給我|替我|永远|永遠|始终|始終|总是|總是|下次|今后|今後|千万|千萬"
    r"|你?(?:能不能|可不可以|能否|可以|能)|我(?:想|要|希望)你|你|您|也|,|\s){0,8}"
)
_ZH_SEP = r"[,:\s]*"
_ZH_NOTE = (
    r"(?:注意(?=[,:])|记住|記住|记着|記著|記着|牢记|牢記|记下来?|記下來?|记一下|記一下|记好|記好"
    r"|(?:记录|記錄|保存|备注|備註|存)(?:一下|下来|下來|起来|起來)?|不要忘了|不要忘记|不要忘記|别忘了?"
    r"|別忘了?"
    r"|别忘记|別忘記)"
)
_ZH_I = r"(?:我|咱|俺|本人)"
_ZH_PEOPLE = (
    r"(?:朋友|闺蜜|閨蜜|同事|邻居|鄰居|老板|老闆|上司|经理|經理|同学|同學|室友|老师|老師|房东|房東|客户"
    r"|客戶|前任|前男友"
    r"|前女友|妈妈|媽媽|妈|媽|母亲|母親|爸爸|爸|父亲|父親|父母|爸妈|爸媽|姐姐|姐|妹妹|妹|哥哥|哥|弟弟|弟"
    r"|奶奶|爷爷|爺爺"
    r"|外婆|外公|表[哥姐弟妹]|堂[哥姐弟妹]|叔叔|阿姨|舅舅|姑姑)"
)
_ZH_KNOW = r"(?:知道|记得|記得|记住了?|記住了?|了解|瞭解|记|記|存了|保存了|掌握)"
_ZH_WHAT = r"(?:什么|什麼|啥|哪些(?:事情?|信息|資訊|东西|東西)?|多少|些?什么(?:事情?|信息)?)"
_ZH_ABOUT = r"(?:关于|關於|有关|有關)"
_ZH_END = r"(?:呢|啊|呀|吗|嗎|了)?"

CHINESE = Rules(
    remember=_any(
        rf"{_ZH_ASK}{_ZH_NOTE}(?:这一?点|這一?點|以下)?{_ZH_SEP}(?P<fact>.+)",
        # 你记得我... is what one asks, not what one wants.
        r"(?:(?:下次|以后|以後|今后|今後|请|請|麻烦|麻煩|拜托|拜託|帮我|幫我|一定要|一定"
        r"|要)[,\s]*){0,3}(?:你)?"
        rf"(?<!^你)(?:要)?(?:记得|記得){_ZH_SEP}(?P<fact>.+)",
        rf"你(?:一定|务必|務必|总|總)?(?:要|得|必须|必須)(?:一直|永远|永遠)?(?:记得"
        rf"|記得){_ZH_SEP}(?P<fact>.+)",
        rf"(?P<fact>.+?)[,;\s]+{_ZH_ASK}(?:{_ZH_NOTE}|(?:记得|記得)$)(?:这一?点|這一?點|这个|這個|了|它)?",
    ),
    forget=_any(
        _ZH_ASK
        + r"(?:忘记|忘記|忘掉|忘了|别再记得|別再記得|不要再记得|不要再記得|删除|刪除|删掉|刪掉)"
        + rf"{_ZH_SEP}(?P<fact>我.+?)了?",
        # 不用记住 is that it need not be kept, and no wish to forget.
        _ZH_ASK + r"(?:(?:别|別|不要)再?|不用再)(?:记住|記住)" + rf"{_ZH_SEP}(?P<fact>我.+?)了?",
        _ZH_ASK
        + rf"把{_ZH_SEP}(?P<fact>我.+?)(?:这件事|這件事|的事情?)?(?:忘了|忘掉|忘记|忘記|删掉|刪掉|删除|刪除)",
    ),
    forget_all=_any(
        _ZH_ASK
        + r"(?:忘记|忘記|忘掉|删除|刪除|清除|清空)(?:你)?(?:知道|记得|記得|记住|記住)?(?:的)?"
        + rf"{_ZH_ABOUT}?(?:我|和我有关|和我有關)?的?(?:一切|所有(?:信息|資訊|记忆|記憶|事情|事|数据|數據)?"
        + r"|全部)"
    ),
    listing=_any(
        rf"{_ZH_ABOUT}我(?:的事)?[,\s]*你(?:都|还|還)?{_ZH_KNOW}(?:些)?{_ZH_WHAT}{_ZH_END}",
        rf"你(?:都|还|還|现在|現在)?{_ZH_KNOW}(?:些|了)?(?:{_ZH_ABOUT})?我(?:的)?(?:些)?(?:{_ZH_WHAT}|事情"
        rf"|一切){_ZH_END}",
        rf"你(?:都|还|還)?{_ZH_KNOW}(?:些|了)?(?:什么|什麼|哪些){_ZH_ABOUT}我的(?:事情?|信息|資訊){_ZH_END}",
        rf"你(?:对|對)我(?:都|还|還|有)?(?:{_ZH_KNOW}(?:些)?{_ZH_WHAT}|(?:什么|什麼|多少|哪些)(?:了解|瞭解"
        rf"|印象|记忆|記憶)){_ZH_END}",
        rf"你(?:都)?(?:记住了|記住了|记得|記得)(?:些)?{_ZH_WHAT}{_ZH_END}",
        rf"我(?:都)?(?:让|讓|叫|请|請)你(?:都)?(?:记住|記住|记得|記得|记)(?:了|过"
        rf"|過)?(?:些)?{_ZH_WHAT}{_ZH_END}",
        r"(?:请|請)?(?:告诉|告訴|列出|显示|顯示|说说|說說|给我看|給我看)(?:我|一下)?(?:所有)?你(?:所"
        r"|都)?(?:知道|记得|記得|记住|記住)(?:了)?"
        rf"(?:的)?(?:所有)?(?:{_ZH_ABOUT})?我的(?:一切|所有(?:事情?|信息|資訊)|事情?|信息|資訊|{_ZH_WHAT})",
        r"(?:请|請)?(?:列出|显示|顯示|给我看|給我看)(?:一下)?我的(?:记忆|記憶)",
    ),
    # "记住不吃香菜": what is not eaten, and nobody is named.
    own=re.compile(
        rf".*{_ZH_I}|(?:(?:不(?:能|可以)?[吃喝]|吃不了|[对對](?=[^,]*[过過]敏))(?!.*(?:好|的|[开開][车車]))"
        r"[^,]{1,10}|吃素)\s*$",
        _FLAGS,
    ),
    others=re.compile(
        rf"(?:(?:你|您|他|她|它|牠|这|這|那)"
        rf"|我们?(?:的|家)?(?:好|老|最好的|一个|一個)?{_ZH_PEOPLE}(?!.{{0,8}}(?:和|跟|与|與)我)"
        r"|我(?!.*(?:是|有|叫|在|很|不|没|沒|住|吃|喝|喜|爱|愛|想|要|会|會|能|过|過|怕|讨|討|属"
        r"|屬|对|對"
        r"|需|用|做|养|養|带|帶|开|開|骑|騎|坐|穿|戴|常|总|總|每|习惯|習慣|只|从|從|来自|來自|学|學|教|买|買"
        r"|偏|信|支持|姓|去|打|玩|:|\d))(?:的|.{0,3}\s*$|(?=\S*(?:密码|密碼|生日|电话|電話|号码|號碼|地址"
        r"|名字|邮箱|郵箱|账号"
        r"|帳號)\W*$))"
        # a name: 小明, 老王, 李娜
        r"|(?!小(?:吃|麦|麥|孩|米|狗|猫|貓|葱|蔥)|老(?:婆|公|人)|阿姨)(?:[小老阿][\u4e00-\u9fff]"
        r"|[王李张張刘劉陈陳杨楊赵趙黄黃"
        r"周吴吳徐孙孫朱林郭何罗羅郑鄭梁谢謝宋唐许許韩韓邓鄧冯馮曹彭曾萧蕭蔡潘袁董余苏蘇叶葉吕呂魏蒋蔣][\u4e00-\u9fff]{1,2})"
        r"(?:对|對|不|是|有|喜|讨|討|住|叫|爱|愛|在|会|會|吃|喝|很)(?!.*我)"
        # said of what was, not of what is: "记得我小时候..."
        r"|我们?(?:小时候|小時候|以前|曾经|曾經|当年|當年|上次|昨天|刚才|剛才|问过|問過|说过|說過))",
        _FLAGS,
    ),
    named=re.compile(
        r"(?:记住|記住|记得|記得|记着|记下|記下|记一下|記一下|忘了|忘记|忘記)[,:\s]*(?P<fact>.+)", _FLAGS
    ),
    that=re.compile(
        rf"{_ZH_ASK}{_ZH_NOTE}(?:这一?点|這一?點|这个|這個|了|它)?",
        _FLAGS,
    ),
)

# ---------------------------------------------------------------- Korean

_KO_DO = (
    r"(?:(?:꼭|좀|잘|항상|언제나|늘|계속|절대)\s*){0,3}(?:(?:(?:기억|메모|저장|기록|보관)해|적어"
    r"|써)\s*(?:줘요?|주세요|주십시오|주라|둬요?|두세요|달라"
    r"|줄래요?|주실래요"
    r"|줄\s*수\s*있(?:어요?|니|나요|을까요?)|주시겠어요|주실\s*수\s*있(?:나요|어요|을까요))"
    r"|기억하(?:세요|십시오|도록\s*해)|잊지\s*(?:마(?:세요|요)?|말아\s*(?:줘요?|주세요))|외워\s*(?:줘|둬"
    r"|두세요))"
)
_KO_THING = r"(?:\s*(?:것|거|점|사실)\s*(?:을|를|은|도)?|\s*걸)"
_KO_FORGET = (
    r"(?:이제\s*|그만\s*|좀\s*){0,3}(?:잊어\s*(?:줘요?|주세요|버려(?:\s*줘)?)?|(?:지워|삭제해)\s*"
    r"(?:줘요?|주세요|버려)?|기억하지\s*(?:마(?:세요)?|말아\s*줘))"
)
_KO_I = r"(?:나|저|내|제|우리|저희|난|전|날)"
_KO_PEOPLE = (
    r"(?:친구|동료|직장\s*동료|상사|사장님?|이웃|룸메이트|선생님|집주인|고객|전\s*(?:남|여)자\s*친구|어머니"
    r"|엄마|아버지|아빠"
    r"|부모님?|언니|누나|오빠|형|동생|여동생|남동생|사촌|이모|삼촌|고모|할머니|할아버지)"
)
_KO_ABOUT_ME = r"(?:나|저)(?:에\s*(?:대해서?|관해서?|대한|관한)|에\s*관련된)"
_KO_WHAT = r"(?:무엇을|무엇|뭘|뭐를|뭐|무얼|어떤\s*(?:것|걸|거)(?:을|를)?|얼마나|어디까지)"

KOREAN = Rules(
    remember=_any(
        # "...다고", "...라고", "...다는 것을": what is said stands before it, whole (see `core.phrases`).
        rf"(?P<fact>.+?(?:다|라)(?:고|는)){_KO_THING}?\s*{_KO_DO}",
        rf"(?:메모|저장|기록|기억(?:해요?)?)\s*:\s*(?P<fact>{_KO_I}.+)",
        # "나 오이 못 먹는 거 기억해": among friends, without a particle.
        rf"(?P<fact>(?:나|저|우리)\s.+?는{_KO_THING})\s*(?:{_KO_DO}|기억해(?:요|라)?)",
        # "...하는 거 기억해 줘" is a reminder unless one speaks of oneself.
        rf"(?P<fact>(?:내가|제가|나는|저는|난|전|우리가|저희가)\s.+?는{_KO_THING})\s*{_KO_DO}",
        r"(?:(?:이거|이걸|이것을?|이\s*내용을?|다음을)\s*)?(?:(?:다음|나중|앞)(?:을|에"
        r"|으로를)?\s*위해서?\s*)?"
        rf"{_KO_DO}\s*[,:]?\s*(?P<fact>{_KO_I}(?:는|은|가|의|\s|이|에게|한테)?.+)",
        rf"(?P<fact>{_KO_I}.+?(?:야|어|아|해|요|다|니까|거든|는데))\s*[,.]?\s*(?:이거\s*|이걸\s*"
        rf"|그거\s*)?{_KO_DO}",
    ),
    forget=_any(
        rf"(?P<fact>.+?(?:다|라)(?:고|는)(?:\s*(?:한|말한))?){_KO_THING}?\s*{_KO_FORGET}",
        rf"(?P<fact>.+?(?:는|은){_KO_THING})\s*{_KO_FORGET}",
        rf"(?P<fact>{_KO_I}.*?)(?:을|를|에\s*대한\s*(?:것|기억)(?:을|를)?)\s*{_KO_FORGET}",
    ),
    forget_all=_any(
        rf"(?:(?:나|저|내|제)(?:에\s*대한|에\s*대해서?|에\s*관한|에\s*관해)?\s*)?(?:아는\s*|알고\s*있는\s*"
        rf"|기억하는\s*)?"
        rf"(?:모든\s*(?:것|걸|거|정보|기억)|(?:것|거|걸)\s*(?:전부|모두|다)|전부|모두|다)(?:을"
        rf"|를)?\s*(?:다\s*)?{_KO_FORGET}",
    ),
    listing=_any(
        rf"{_KO_ABOUT_ME}\s*(?:지금\s*)?{_KO_WHAT}\s*(?:알고\s*있|기억하|알아|기억해|저장|알지|아니|아나"
        rf"|알고\s*계|아세요|아시나).*",
        rf"{_KO_WHAT}\s*(?:알고\s*있|기억하)\S*\s*{_KO_ABOUT_ME}",
        rf"{_KO_ABOUT_ME}\s*(?:아는|알고\s*있는|기억하는|저장한|저장된)\s*(?:것|거|게|걸|정보"
        rf"|내용)(?:들)?(?:을|를|이|은)?\s*"
        r"(?:(?:다|모두|전부)\s*)?(?:말해|알려|보여|있|뭐|무엇|얘기해).*",
        rf"{_KO_WHAT}\s*기억(?:하고\s*있|해\s*달라고\s*(?:했|부탁)).*",
        rf"내가\s*{_KO_WHAT}\s*기억(?:해\s*달라고|하라고)\s*했.*",
        r"(?:내|제)\s*(?:기억|메모)(?:들)?(?:을|를)?\s*(?:보여|알려)\s*(?:줘|주세요).*",
    ),
    own=re.compile(
        rf"(?:(?:.*\s)?{_KO_I}(?:는|은|가|의|를|도|에게|한테|와|랑|\s)"
        # Nobody is named: who speaks is meant. A topic ("고기는 안 먹는다") has no object beside it.
        r"|(?=.*[가-힣])(?!\S+(?:은|는|이|가|께서)\s)|\S+(?:은|는|이|가)\s(?!.*\S(?:을|를)\s).*(?:싫|좋아"
        r"|먹|마시|마신|알레르기))",
        _FLAGS,
    ),
    others=re.compile(
        r"(?:(?:그|그녀|걔|얘|쟤|너|네|니|당신|그들|이것|저것|그것)(?:는|은|가|이|의|도)?\s"
        r"|(?:그는|그가|그녀는|넌|걘)|\S+(?:씨|님)(?:는|은|이|가)\s"
        rf"|(?:(?:내|제|나의|저의|우리)\s*)?(?:\S+\s+)?{_KO_PEOPLE}(?:\s+\S+)?(?:는|은|이|가|도"
        rf"|께서)\s(?!.*(?:나와|저와|나랑|저랑))"
        # Somebody is named, and what they do to what.
        r"|(?!\S*(?:딸|아들|아이|애|아내|남편|개|강아지|고양이|아침|점심|저녁|주말|평일|오늘|내일"
        r"|평소에)(?:은|는|이|가)\s)"
        rf"(?!{_KO_I}(?:는|은|가|이|의)?\s)[가-힣]{{2,4}}(?:은|는|이|가)\s(?=.*\S(?:을|를)\s)"
        rf"(?!.*(?:^|\s){_KO_I}(?:는|은|가|를|의|에게|한테)?\s))",
        _FLAGS,
    ),
    named=re.compile(
        rf"^(?P<fact>.+?)(?:다고|라고|(?:다|라)?는{_KO_THING})?\s*(?:꼭\s*)?(?:기억|메모|저장|잊지)", _FLAGS
    ),
    that=re.compile(
        rf"(?:이거\s*|이걸\s*|그거\s*|그걸\s*|이\s*점\s*)?(?:{_KO_DO}|꼭\s*기억해(?:요)?)",
        _FLAGS,
    ),
)

# ---------------------------------------------------------------- German and French

GERMAN = Rules(
    remember=_any(
        r"(?:bitte\s+)?(?:merke?\s+dir|denk(?:e)?\s+daran"
        r"|vergiss\s+nicht)(?:\s+bitte)?[,:\s]+dass\s+(?P<fact>.+)"
    ),
    forget=_any(r"(?:bitte\s+)?vergiss[,\s]+dass\s+(?P<fact>.+)"),
    forget_all=_any(
        r"(?:bitte\s+)?vergiss\s+(?:bitte\s+)?alles(?:,?\s+was\s+du)?\s+[uü]ber\s+mich(?:\s+wei(?:ß|ss)t)?"
    ),
    listing=_any(r"was\s+wei(?:ß|ss)t\s+du\s+[uü]ber\s+mich"),
    own=re.compile(r".*\b(?:ich|mich|mir|mein\w*|wir|uns|unser\w*)\b", _FLAGS),
    others=re.compile(
        r"(?:er|sie|es|du|ihr)\b|mein\w*\s+(?:\w+\s+)?(?:freund(?:in)?|kolleg\w+|nachbar\w*|chef\w*|mutter"
        r"|vater"
        r"|schwester|bruder)\b",
        _FLAGS,
    ),
    named=re.compile(r"\bdass\s+(?P<fact>.+)", _FLAGS),
    that=re.compile(
        r"(?:bitte\s+)?(?:merke?\s+dir\s+das|vergiss\s+das\s+nicht)(?:\s+bitte)?",
        _FLAGS,
    ),
)
FRENCH = Rules(
    remember=_any(
        r"(?:s'il\s+(?:te|vous)\s+pla[iî]t[,\s]+)?(?:souviens-toi|rappelle-toi|retiens|n'oublie\s+pas)"
        r"\s+qu(?:e\s+|')(?P<fact>.+)"
    ),
    forget=_any(r"(?:s'il\s+(?:te|vous)\s+pla[iî]t[,\s]+)?oublie\s+qu(?:e\s+|')(?P<fact>.+)"),
    forget_all=_any(r"oublie\s+tout(?:\s+ce\s+que\s+tu\s+sais)?\s+(?:de|sur)\s+moi"),
    listing=_any(r"qu(?:e|'est-ce\s+que)\s+(?:sais-tu|tu\s+sais)\s+(?:de|sur)\s+moi"),
    own=re.compile(r".*\b(?:je|j'\w+|me|m'\w+|moi|mon|ma|mes|nous|notre|nos)\b", _FLAGS),
    others=re.compile(
        r"(?:il|elle|ils|elles|tu|vous)\b|(?:mon|ma|mes)\s+(?:\w+\s+)?(?:amie?s?|coll[eè]gue|voisine?|chef"
        r"|m[eè]re"
        r"|p[eè]re|s[œo]e?ur|fr[eè]re)\b",
        _FLAGS,
    ),
    named=re.compile(r"\bqu(?:e\s+|')(?P<fact>.+)", _FLAGS),
    that=re.compile(
        r"(?:retiens|note)-le|souviens-t'en|ne\s+l'oublie\s+pas",
        _FLAGS,
    ),
)

LANGUAGES: Sequence[Rules] = (ENGLISH, SPANISH, ITALIAN, CHINESE, KOREAN, GERMAN, FRENCH)

# ---------------------------------------------------------------- what stands around it

_GREETING = _one_of(
    "hello hi hiya hey hey_there hi_there good_(?:morning|afternoon|evening|day) greetings dear ok okay so"
    " also and"
    " but well oh ah now first firstly then by_the_way btw fyi thanks thank_you please pls just_so_you_know"
    " listen"
    " sorry excuse_me yes no(?=\\s*[,.!:;]) great from_now_on for_(?:the_future|future_reference|next_time"
    "|the_record|your_information)"
    " para_la_pr[oó]xima(?:_vez)? la_pr[oó]xima_vez per_la_prossima_volta la_prossima_volta mi_raccomando"
    " hola buenas buenos_d[ií]as buenas_(?:tardes|noches) oye oiga mira perdona y adem[aá]s tambi[eé]n"
    " vale bueno"
    " bien gracias por_cierto por_favor porfa a_partir_de_ahora de_ahora_en_adelante"
    " ciao salve buongiorno buonasera ehi senti ascolta scusa e ed inoltre anche poi allora bene grazie"
    " a_proposito per_favore per_piacere d'ora_in_poi d'ora_in_avanti"
    " hallo guten_(?:tag|morgen|abend) bitte und bonjour salut et"
)
_GREETING_CHINESE = (
    r"(?:你好啊?|您好|嗨|哈[喽啰囉]|嘿|喂|早上好|早安|下午好|晚上好|大家好|对了|對了|好的?|那么?|还有|還有"
    r"|另外|顺便|順便"
    r"|谢谢|謝謝|不好意思)"
)
_GREETING_KOREAN = (
    r"(?:안녕하세요|안녕|저기요?|여보세요|참|아|그리고|또|있잖아|그런데|근데|부탁인데|앞으로|제발|고마워"
    r"|감사합니다"
    r"|죄송하지만)"
)
_GAP = r"[\s,.!:;~…。、-]"
# "Hello, ", "also ", "by the way: ": any number of them. A name is one or two words after such a word, or one
# before a comma.
LEAD = re.compile(
    rf"(?:{_GREETING}\b|{_GREETING_CHINESE}|{_GREETING_KOREAN}(?=[,!.~\s]|$)){_GAP}*",
    _FLAGS,
)
NAME = re.compile(r"(?!(?:said|says|sang|quote|title|lyrics)\b)[^\W\d_][\w'-]{1,19}[,!]\s*", _FLAGS)
# ... but no word that turns the request into its opposite.
WORD = re.compile(
    r"(?!(?:don'?t|do|not|never|no|nor|without|stop|avoid|can'?t|cannot|won'?t|needn'?t|shouldn'?t"
    r"|mustn'?t|nunca"
    r"|jam[aá]s|sin|non|mai|senza|nicht|nie|ne|pas)\b)[\w'-]{1,20}[\s,.!:]*",
    _FLAGS,
)
# What follows a request and belongs to no fact. A bare "ok" may: "my knee is ok".
TAIL = re.compile(
    r"(?:[\s,;]+(?<!say )(?<!saying )(?:please|pls|plz|thanks|thank\s+you|thx|por\s+favor|porfa|gracias"
    r"|per\s+favore"
    r"|per\s+piacere|grazie|bitte|danke|merci|s'il\s+te\s+pla[iî]t)"
    r"|\s*,\s*(?:ok|okay|alright|all\s+right|will\s+you|would\s+you|¿?\s*vale|de\s+acuerdo|va\s+bene"
    r"|d'accordo|intesi|capito)\s*\??"
    r"|\s+(?:ok|okay|vale|va\s+bene|d'accordo)\s*\?"
    r"|[\s,]*(?:好吗|好嗎|好不好|可以吗|可以嗎|行吗|行嗎|谢谢你?|謝謝你?|拜托了?|拜託了?|哦|喔|噢|啊|呀|吧"
    r"|啦|哈)\s*\??"
    r"|[\s,.]+(?:부탁해요?|부탁드려요|고마워요?|감사합니다|감사해요|알겠지|알았지|알겠죠|응|제발|네)\s*\??"
    r"|[\s.!~。…,;]+)$",
    _FLAGS,
)
QUESTION = re.compile(r"(?:\?|[吗嗎呢]\s*[?.。]?|(?:나요|까요|습니까|을까|ㄹ까)\s*[?.]?)\s*$")
POLITE_QUESTION = re.compile(
    r"(?:(?:(?:can|could|would)\s+(?:you|u)|will\s+(?:you|u)\s+(?:please|kindly))\s+(?:(?:please|pl[sz]"
    r"|kindly|also"
    r"|always|just)\s+){0,3}(?:remember|forget|keep|bear|note|make|save|store|delete|erase)"
    rf"{_EN_FOR}*\s+(?:that|this|everything|in\s+mind|a\s+note|all|my|me|it)\b"
    r"|(?:would|do)\s+you\s+mind\s+(?:remember|not|sav|stor|keep|forgett|delet)(?:e|ing)\b"
    r"|[¿\s]*(?:por\s+favor[,\s]+)?(?:me\s+)?(?:puedes?|podr[ií]as?)\s+(?:recordar|olvidar|anotar|guardar"
    r"|tener|borrar)\b"
    r"|(?:mi\s+)?(?:puoi|potresti)\s+(?:per\s+favore\s+)?(?:ricordar|dimenticar|tener|annotar|memorizzar"
    r"|salvar|cancellar)"
    r"|(?:请|請)?你?(?:能不能|可不可以|能否|可以|能)(?:帮我|幫我)?(?:记|記|忘)"
    rf"|.*{_KO_DO}\s*\?|.*{_KO_FORGET}\s*\?)",
    _FLAGS,
)
# Where what follows is a search of its own beside the request.
NEXT = re.compile(
    r"(?:\s*[,;-]+\s*|\s+)(?:and\s+|then\s+|so\s+|but\s+|now\s+|also\s+|please\s+){0,3}(?:"
    r"(?:what|how|where|which|who|when|why)(?:\s+\w+){0,2}?\s+(?:can|could|should|shall|do|does|would|is"
    r"|are)\s+(?:i|we|you|the|there)\b"
    r"|(?:can|could|would)\s+you\s+(?:please\s+)?(?:show|find|give|suggest|recommend|tell|search|help)\b"
    r"|(?:show|find|give|suggest|recommend|tell)\s+(?:me|us)\b|(?:search|look)\s+for\b"
    r")|(?:\s*[,;-]+\s*|\s+)and\s+(?:also\s+|please\s+){0,2}(?:remember|keep\s+in\s+mind|note)\s+that\s"
    r"|(?:\s*[,;-]+\s*|\s+)(?:y\s+|entonces\s+|ahora\s+){0,3}(?:¿(?!\s*(?:vale|ok|s[ií]|de\s+acuerdo)\b)"
    r"|qu[eé]\s+(?:puedo|podemos|me|hay|debo)\b"
    r"|(?:b[uú]sca|mu[eé]stra|recomi[eé]nda|encu[eé]ntra|ens[eé][nñ]a|sugi[eé]re|da|di)(?:me|nos)\b)"
    r"|(?:\s*[,;-]+\s*|\s+)y\s+(?:tambi[eé]n\s+)?recuerda\s+que\s"
    r"|(?:\s*[,;-]+\s*|\s+)(?:ed?\s+|poi\s+|allora\s+|ora\s+){0,3}(?:(?:che\s+)?cosa\s+(?:posso|possiamo|mi"
    r"|c'è|devo)\b"
    r"|(?:trova|cerca|mostra|consiglia|suggerisci|da|di|dam|dim)(?:mi|ci)\b)|(?:\s*[,;-]+\s*"
    r"|\s+)e\s+(?:anche\s+)?ricorda(?:ti)?\s+che\s"
    r"|\s*[,;]\s*(?=[^,;]*(?:什么|什麼|怎么|怎麼|哪|吗|嗎|多少|推荐|推薦|给我|給我|帮我找|幫我找|有没有"
    r"|有沒有)|(?:请|請)?(?:记住|記住))"
    r"|(?<=줘)\s+(?=\S)|(?<=주세요)\s+(?=\S)",
    _FLAGS,
)
# Where an English statement speaks of the person from its first word on.
I_FIRST = re.compile(_EN_I, _FLAGS)
# Not said as true: a case that is only supposed.
SUPPOSED = re.compile(
    r"(?:if|suppose|imagine|whether|in\s+case|si|se|supongamos|supón|immagina|falls|wenn)\b"
    r"|.*\b(?:if\s+(?:i|we)\s+(?:were|was|had)|si\s+(?:yo\s+)?(?:fuera|fuese|tuviera)"
    r"|se\s+(?:io\s+)?(?:fossi|avessi))\b"
    r"|.*(?:如果|假如|假设|假設|要是|만약|혹시)",
    _FLAGS,
)
# Said of the conversation, not of the person: nothing of it is kept.
SPOKEN = re.compile(
    r"(?:my|the|our)\s+(?:last|previous|earlier|first)\s+(?:question|message|search|query|request|answer)s?\b"
    r"|i\s+(?:just\s+|ever\s+)?(?:asked|said|wrote|typed|mentioned)(?:\s+(?:that|this|it|anything))?$",
    _FLAGS,
)
# Where another text is handed over, what it says is not the person's word.
_THEIRS = (
    r"\b(?:translat\w+|summari[sz]e|rewrite|rephrase|paraphrase|proofread|correct\s+this|lyrics"
    r"|quot(?:e|es|ed|ing)"
    r"|said|says|wrote|writes|sang|sings|reads|page|article|text|traduc\w+|resum\w+|traduci|riassumi|tradurre"
    r"|dice|dijo|dicono|diceva|disse|übersetz\w*)\b|翻译|翻譯|总结|總結|改写|改寫|说道|번역|요약"
    r"|라고\s*(?:말했|했|적혀|써)"
)
TEXT_OF_OTHERS = re.compile(_THEIRS, _FLAGS)
HANDED_OVER = re.compile(rf":\s*$|:\s|{_THEIRS}", _FLAGS)
# Words by which one asks to keep something, in sentences of any build: what a model reads as such a request
# has one of them. Languages in which we know them ("": not sure which); of others a model is believed.
CUED = frozenset({"", "en", "es", "it", "zh", "ko", "de", "fr", "pt", "nl", "ja", "ru", "pl", "sv", "tr"})
CUE = re.compile(
    r"\b(?:(?<!i )(?<!will )(?<!cannot )(?<!can't )(?<!could )(?<!not )(?<!called )(?<!titled )(?<!named"
    r" )remember(?!\s+(?:who|me|him|her|them|how|when|to)\b)"
    r"|memori[sz]e|keep\s+(?:in\s+mind|that|this|it|track)|bear\s+in\s+mind|not(?:e|ed)\b|(?:do\s+not"
    r"|don'?t|never)\s+forget"
    r"|from\s+now\s+on|from\s+today|always|in\s+(?:the\s+)?future|next\s+time|every\s+time|for\s+later"
    r"|going\s+forward|fyi"
    r"|for\s+your\s+information|so\s+you\s+know|save|store|never\s+(?:again|show|suggest|recommend)"
    r"|(?<!quiero )(?<!puedo )(?<!no )rec(?:u[eé]|o)rd\w+(?!\s+(?:al?|el|las?|los)\b)|acu[eé]rd\w+"
    r"|ten(?:ga)?\s+(?:en\s+cuenta|presente)|tenlo|anot\w+|ap[uú]nt\w+|gu[aá]rd\w+|no\s+(?:te\s+)?olvid\w+"
    r"|a\s+partir\s+de\s+(?:ahora|hoy)|de\s+ahora\s+en\s+adelante|siempre|pr[oó]xima\s+vez"
    r"|(?<!non )(?<!voglio )(?<!mi )(?<!un )ricord\w+(?!\s+(?:di|quando|il|la|lo|come)\b)"
    r"|tien\w+\s+(?:a\s+mente|presente|conto)|annot\w+|salva\w*|segna\w*|non\s+(?:ti\s+)?(?:dimentic"
    r"|scord)\w+|d'ora\s+in\s+(?:poi|avanti)|sempre"
    r"|prossima\s+volta|merk\w*|denk\w*\s+daran|vergiss\w*|vergess\w*|notier\w*|ab\s+jetzt|immer"
    r"|souv(?:iens|enez)\w*|rappel\w+|retien\w*"
    r"|retenez|oubli\w+|not(?:e|ez)|d[eé]sormais|toujours|lembr\w+|guard\w+|esque[cç]\w+|onthou\w*"
    r"|vergeet\w*|voortaan|zapami[eę]t\w*"
    r"|pami[eę]t\w*|zapisz|kom\s+ihåg|glöm|hatırla\w*|unutma\w*|запомн\w*|помни\w*|запиши\w*|не\s+забуд\w*)"
    r"|(?<!忘)[记記]|别忘|別忘|不要忘|以后|以後|从现在|從現在|从今|從今|下次|每次|总是|總是|永远|永遠|保存"
    r"|기억(?!력|에|이|나)|잊지\s*(?:마|말)|메모|저장|외워|기록|적어|앞으로|이제부터|항상|언제나|다음부터"
    r"|覚え|忘れ"
    r"|メモ|今後|これから",
    _FLAGS,
)
# ... and those that say the opposite, or speak of remembering as such.
NOT_ASKED = re.compile(
    r"(?:(?:please\s+|no\s+|never\s*mind\W+|actually\s+)*(?:don'?t|do\s+not|no\s+need\s+to|never|stop"
    r"|you\s+(?:don'?t|needn'?t)(?:\s+(?:have|need)\s+to)?)"
    r"\s+(?:remember|save|store|keep|note|memori[sz]e)|.*\b(?:don'?t|do\s+not)\s+(?:remember|save|store"
    r"|keep|note)\s+(?:that|this|it)\b"
    r"|(?:do|did|will|would|can)\s+(?:you|u|i|we)\s+(?:even\s+|still\s+)?remember(?!\s+that\s+(?:i|my"
    r"|we)\b)|do\s+you\s+(?:still\s+)?remember"
    r"|(?:(?:i|he|she|we|they|you)\s+)(?:still\s+|can\s+|can'?t\s+|cannot\s+|could\s+|couldn'?t\s+"
    r"|don'?t\s+|didn'?t\s+|always\s+|will\s+|do\s+)*remember"
    r"|remember\s+(?:when|how|the|to|me|him|her|them|us|what|who|where|why)\b|(?:do\s+not|don'?t"
    r"|never)\s+forget\s+(?:to|the|me)\b"
    r"|.*\b(?:says?|said|wrote|writes|sings|sang|reads|told|dice|dijo|dec[ií]a|escribi[oó]|diceva|disse"
    r"|scrive|sagte?|dit|disait|pidi[oó]|pide|pregunt[oó]|chiese|chiede|ha\s+chiesto)\b"
    r"|(?:please\s+|(?:can|could)\s+you\s+)*(?:write(?!\s+(?:(?:this|that|it)\s+)?down)|compose|draft"
    r"|translate"
    r"|summari[sz]e|rephrase|rewrite|escribe|traduce|scrivi|traduci)\b[^:]*:"
    r"|.*(?:翻译|翻譯|改写|改寫|总结|總結)[^:]*:|.*(?:번역|요약|고쳐\s*써)[^:]*:"
    r"|.*[说說写寫](?!了?算)|.*(?:라고|다고)\s*(?:말했|말하|했|써)"
    r"|remember\s+(?:my|our)\s+(?:[\w-]+\s*){1,4}$"
    r"|(?:请|請|要|一定)*(?:记得|記得|别忘了?|別忘了?)(?!.*我)"
    r"|.*기억(?:해요?|합니다|한다)\s*[.!]*$|.*[^다라]는\s*(?:것|거|걸)(?:을|를)?\s*(?:꼭\s*)?(?:기억|잊지)"
    r"|\S*\s*(?:if|when|suppose|imagine|what\s+if)\s+(?:i|you|we|someone|somebody)\b"
    r"|(?:por\s+favor[,\s]+)?no\s+(?:lo\s+)?(?:recuerd\w+|guard\w+|anot\w+|memori\w+)"
    r"|(?:ya\s+)?no\s+(?:me\s+acuerdo|recuerdo|puedo\s+recordar)"
    r"|[¿\s]*(?:recuerdas|te\s+acuerdas|si\s+te\s+pid\w+)|recuerda(?:me)?\s+(?:a|el|la|los|las|\w+[aei]r)\b"
    r"|acu[eé]rdate\s+de\s+\w+[aei]r\b"
    r"|(?:per\s+favore[,\s]+)?non\s+(?:lo\s+)?(?:ricorda|salva|memorizza|annota)\w*|non\s+(?:mi\s+)?ricordo"
    r"|non\s+riesco\s+a\s+ricordar\w+"
    r"|(?:ti\s+)?ricordi\s+(?:di|quando|il|la|lo|come|cosa|che)\b|ti\s+ricordi\b|se\s+ti\s+chied\w+"
    r"|ricorda(?:ti|mi)?\s+(?:di\s+)?\w+[aei]re\b"
    r"|.*(?:不要|别|別|不用|不必|无需)(?:再)?(?:记住|記住|记下|記下|保存|记得|記得)|.*(?:记不住|記不住"
    r"|记不得|記不得|不记得|不記得|想不起)"
    r"|你(?:还|還)?(?:记得|記得)|你(?:有没有|有沒有|是不是|是否)|(?:我|他|她)(?:还|還|总|總|只)?(?:记得"
    r"|記得|记住|忘)|(?:如果|假如|要是"
    r"|假设|假設)"
    r"|.*기억(?:하지\s*(?:마|말)|이?\s*안\s*나|나지\s*않|나\?|하니|하나요|해\?|에\s*남)|.*(?:저장"
    r"|메모)하지\s*(?:마|말)|만약|혹시"
    r")",
    _FLAGS,
)
# What keeps something from being remembered, wherever it is said: a negation, what may stand between, and a
# word for keeping. Of oneself one says the same ("I never remember names"), which denies nothing.
_EN_KEEP = (
    r"(?:remember(?:ed|ing)?|memori[sz](?:e|ed|ing)|not(?:e|ed|ing)|(?:mak|tak)(?:e|ing)\s+(?:a\s+)?note"
    r"|(?:keep|bear)(?:ing)?\s+(?:(?:that|this|it)\s+)?in\s+mind|keep(?:ing)?\s+(?:that|this|it|track"
    r"|a\s+(?:note|record))"
    r"|sav(?:e|ed|ing)|stor(?:e|ed|ing)|(?:writ|jot)(?:e|ing|ten)?\s+(?:(?:that|this|it)\s+)?down"
    r"|record(?:ed|ing)?|retain(?:ed|ing)?)\b"
)
_EN_GAP = (
    r"(?:\s+(?:please|pl[sz]|ever|even|also|just|actually|try|bother|you|u|to|be|have|need|want|it"
    r"|necessary|important"
    r"|required|essential|allowed|supposed|permitted|going|automatically|permanently|at\s+all|in\s+any\s+way"
    r"|for\s+(?:you|u|me|now)|under\s+any\s+circumstances?)){0,5}?"
)
_EN_DENIED = (
    r"(?<!\bi )(?<!\bwe )(?<!\bthey )(?<!\bwho )(?<!\bi will )(?<!\bi can )(?<!\bi could )(?<!\bi'll"
    r" )(?<!\bi've )"
    rf"\b(?:do\s+not|don'?t|never|not|needn'?t|unnecessary){_EN_GAP}\s+{_EN_KEEP}"
    r"|\b(?:do\s+not|don'?t|did\s+not|didn'?t|would\s+not|wouldn'?t|never"
    r"|no\s+longer)\s+(?:really\s+)?(?:want|wish|like"
    r"|need|expect|allow|permit|authori[sz]e|require|ask|agree|consent|mean)(?:\s+(?:for|to))?\s+(?:you|u"
    r"|it|that|this|my"
    rf"\s+\w+)(?:\s+(?:to|be|being|have|ever)){{0,3}}\s+{_EN_KEEP}"
    rf"|\bunder\s+no\s+circumstances{_EN_GAP}\s+{_EN_KEEP}|\b(?:is|was|are)n'?t{_EN_GAP}\s+{_EN_KEEP}"
    rf"|\bnot\s+(?:something|anything|worth|for\s+you){_EN_GAP}\s+{_EN_KEEP}|\bnever\s+mind\s+{_EN_KEEP}"
    rf"|\b(?:nobody|no[\s-]?one)\s+(?:asked|told|wants|wanted|needs)\s+you\s+to\s+{_EN_KEEP}"
    r"|\b(?:remember|note|save|store|record|keep)\s+(?:nothing|none)\b"
    rf"|\bno\s+(?:need|reason|point|use)(?:\s+(?:for\s+(?:you|u)|of|in|you)){{0,2}}{_EN_GAP}\s+{_EN_KEEP}"
    r"|\b(?:you|u)\s+(?:should(?:n'?t|\s+not)|must(?:n'?t|\s+not)|may\s+not|can(?:'?t|\s*not)|ought\s+not"
    r"|are\s+not"
    rf"|aren'?t|did\s+not|didn'?t|would\s+not|wouldn'?t|won'?t|will\s+not){_EN_GAP}\s+{_EN_KEEP}"
    r"|\b(?:avoid|stop|quit|without|instead\s+of|(?:refrain|abstain)\s+from|forbid\s+you\s+to)\s+(?:ever\s+)?"
    rf"{_EN_KEEP}"
)
_ES_DENIED = (
    r"(?:\b(?:no|nunca|jam[aá]s|tampoco|sin)(?:\s+(?:l[oa]s?|te|se|me|nos|quiero|queremos|quisiera|deseo"
    r"|necesito|hace|falta"
    r"|es|necesari[oa]|preciso|importante|obligatorio|tienes?|debes?|deber[ií]as?|hay|que|de|por\s+qu[eé]"
    r"|puedes?"
    r"|podr[ií]as?|vayas?|a|gustar[ií]a|permito|autorizo|jam[aá]s|nunca|m[aá]s|ya)){0,6}"
    r"|\b(?:evita|evite|deja|deje)(?:\s+de)?"
    r"|\bni\s+se\s+(?:te|le)\s+ocurra|\b(?:te|le)\s+proh[ií]bo)\s+"
    r"(?:recuerd(?:es?|en|as?)|record(?:ar(?:l[oa])?|[aá]r?as?|ases?)|(?:te\s+)?(?:acuerd(?:es?|en)"
    r"|acordarte)"
    r"|(?:guard|anot|apunt|registr|almacen|conserv)(?:es?|en|as?|ar(?:l[oa])?|aras?|ases?)"
    r"|memori(?:ces?|zas?|zar(?:l[oa])?)|tom(?:es?|ar)\s+nota|(?:ten(?:ga|gas|er|erl[oa])"
    r"|tuvieras)\s+(?:en\s+(?:cuenta|mente)"
    r"|presente))\b"
)
_IT_DENIED = (
    r"(?:\b(?:non|mai|senza|nemmeno|neanche)(?:\s+(?:l[oa]|ti|si|mi|ci|voglio|vorrei|vogliamo|desidero"
    r"|serve|occorre|bisogna"
    r"|[eè]|necessario|importante|il\s+caso|c'[eè]|bisogno|devi|dovresti|deve|dovete|puoi|potresti|che|tu"
    r"|lei|di|mai|pi[uù]"
    r"|stare|a)){0,6}|\b(?:evita|eviti|smetti|smetta)(?:\s+di)?)\s+"
    r"(?:(?:ricord|annot|salv|memorizz|segn|registr|conserv)(?:are?|ar(?:l[oa]|ti|si|tel[oa]|sel[oa])|[ia]"
    r"|ate|ino|assi|asse)"
    r"|(?:tenere?|tenga|tieni|tenessi|tenerl[oa])\s+(?:a\s+mente|in\s+mente|presente|conto)"
    r"|prend(?:ere|a|i|essi)\s+nota)\b"
)
_ZH_KEEP = (
    r"(?:记住|記住|记下|記下|记着|記著|記着|记得|記得|记录|記錄|记|記|保存|存储|存儲|储存|儲存|存|收藏"
    r"|留存|保留|写下|寫下"
    r"|备注|備註)"
)
# Not "能不能记住", which asks for it.
_ZH_DENIED = (
    r"(?:(?<![能可要会會是好需想愿願])不(?:要|用|必|需要?|想要?|希望|许|許|准|可以?|能|该|該|应该|應該"
    r"|愿意?|願意?|同意)"
    r"|别|別|勿|甭|无需|無需|无须|無須|(?:没|沒)有?必要[^,。]{0,4}?|用不着|用不著|(?:没|沒)有?(?:让|讓|叫"
    r"|要|请|請)你"
    r"|停止|禁止|拒绝|拒絕|避免)"
    r"(?:再|去|你|您|让|讓|叫|要|帮我|幫我|替我|给我|給我|特意|专门|專門|,|\s){0,5}"
    rf"(?:把[^。]{{1,40}}?)?{_ZH_KEEP}"
)
_KO_KEEP = r"(?:기억|메모|저장|기록|보관)(?:은|을|를)?\s*"
_KO_DENIED = (
    rf"{_KO_KEEP}(?:하지|하시지|해\s*(?:주지|두지|놓지))(?:는|도)?\s*(?:마|말|않|못하게)"
    rf"|{_KO_KEEP}(?:할|하실|해\s*(?:줄|둘|주실))\s*필요(?:는|가|도)?\s*(?:전혀\s*)?없"
    rf"|{_KO_KEEP}안\s*(?:해|하)|안\s*{_KO_KEEP}(?:해|하)|{_KO_KEEP}(?:하면|하시면|해서는|해선)\s*안"
    rf"|{_KO_KEEP}하(?:길|기를|는\s*(?:건|걸|것을|것은))\s*(?:원하지|원치|바라지|싫)"
    r"|(?:외우|남기|적|쓰|적어\s*(?:두|놓|주)|써\s*(?:두|놓|주))지\s*(?:마|말|않)"
)
_DE_FR_DENIED = (
    r"\b(?:merke?n?\s+(?:dir|sie\s+sich)|speicher\w*|notier\w*)(?:\s+(?:bitte|das|es|dir)){0,3}\s+(?:nicht"
    r"|nie|niemals)\b"
    r"|\b(?:nicht|nie|niemals)\s+(?:zu\s+)?(?:merken|speichern|notieren)\b"
    r"|\bne\s+(?:te\s+|t')?(?:l[ea]\s+)?(?:retiens|retenez|not(?:e|ez)|enregistr(?:e|ez)|souviens"
    r"|rappell(?:e|ez)|gard(?:e|ez)"
    r"|m[eé]moris(?:e|ez))\S*\s+(?:pas|jamais|plus)\b"
    r"|\bne\s+(?:pas|jamais)\s+(?:te\s+)?(?:retenir|noter|enregistrer|garder|m[eé]moriser)\b"
)
DENIED = re.compile(
    "|".join((_EN_DENIED, _ES_DENIED, _IT_DENIED, _ZH_DENIED, _KO_DENIED, _DE_FR_DENIED)), _FLAGS
)
# "Don't remember that I ... any more": it is to be forgotten, and no mere wish that it be not kept.
NO_MORE = re.compile(
    r"\b(?:any\s*more|any\s*longer|no\s+longer|stop|ya|m[aá]s|pi[uù]|smetti|smetta|deja|deje)\b|再|了\W*$"
    r"|이제|더\s*이상"
    r"|그만",
    _FLAGS,
)
# Behind a denial: what was said before is meant.
REFERS_BACK = re.compile(
    r"\s*(?:that|this|it|any\s+of\s+(?:that|this)|eso|esto|questo|了|这个|這個|它)?\W*$", _FLAGS
)
ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:[a-z]|st|dr|mr|mrs|ms|prof|sr|sra|srta|dra|sig|dott|no|nr|vs|e\.g|i\.e|etc|approx|ca"
    r"|inc|ltd|jr|p\.\s?ej)$",
    re.IGNORECASE,
)
