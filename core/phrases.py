"""Explicit memory phrases in several languages: what the memory step knows when there is no model."""

from __future__ import annotations

import re

from core.memory.claims import is_sensitive, kind_of
from core.memory.facts import Request

__all__ = ["is_sensitive", "memory_request"]

# A request is short, and the patterns look at every place where one could begin and end.
MAX_REQUEST_CHARS = 600
_FLAGS = re.IGNORECASE | re.DOTALL
_END = r"[\s.!\u3002\uff01~]*"
_POLITE = r"(?:please[,\s]+|can you\s+(?:please\s+)?|could you\s+(?:please\s+)?)?"
_ES_POLITE = r"(?:por favor[,\s]+)?"
_IT_POLITE = r"(?:per favore[,\s]+)?"
_ZH_POLITE = r"(?:请|請)?(?:你)?"

# Each pattern takes the whole message: "remember that ..." in mid-question is not a request to us.
# A question ("do you remember that ...?") is none either: see `_QUESTION`.
_REMEMBER = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        _POLITE
        + r"(?:remember|note|keep in mind|don['’]?t forget)(?:\s+that)?[\s:,]+"
        + r"(?P<fact>(?:i|i['’]\w+|my|we|we['’]\w+|our)\b.+)",
        # About something else than the person only where the person is in it.
        _POLITE
        + r"(?:remember|note)(?:\s+that|\s*:)\s*(?P<fact>(?=.*\b(?:i|i['’]m|me|my|mine|we|us|our|ours)\b)"
        + r"(?!(?:he|she|they|you|it|this|that|his|her|their|your)\b).+)",
        _ES_POLITE + r"(?:recuerda|recuerde|acu[eé]rdate de|ten en cuenta|no olvides)\s+que\s+(?P<fact>.+)",
        _IT_POLITE + r"(?:ricorda|ricordati|ricordi|tieni a mente|non dimenticare)\s+che\s+(?P<fact>.+)",
        _ZH_POLITE + r"(?:记住|記住|记得|記得|别忘了|別忘了)[,\uff0c:\uff1a\s]*(?P<fact>.+)",
        r"(?P<fact>.+?)(?:는|은)?\s*(?:것을|걸|거|점을)\s*(?:꼭\s*)?"
        r"(?:기억해\s*(?:줘|주세요|두세요|둬)?|잊지\s*마(?:세요)?)[.!]?",
        r"(?P<fact>.+?)(?:다고|라고)\s*(?:꼭\s*)?기억해\s*(?:줘|주세요|두세요|둬)?[.!]?",
        r"(?:bitte\s+)?(?:merke? dir|denk daran|vergiss nicht)[,\s]+dass\s+(?P<fact>.+)",
        r"(?:s['’]il (?:te|vous) pla[iî]t[,\s]+)?(?:souviens-toi|rappelle-toi|retiens|n['’]oublie pas)"
        r"\s+qu(?:e\s+|['’])(?P<fact>.+)",
    )
)
_FORGET_ALL = tuple(
    re.compile(pattern + _END, _FLAGS)
    for pattern in (
        _POLITE
        + r"(?:forget|delete|erase|remove)\s+(?:everything|all|all of it|anything|whatever)"
        + r"(?:\s+(?:that\s+)?you(?:['’]ve| have)?\s+(?:know|remember(?:ed)?|stored|kept|saved|learned))?"
        + r"(?:\s+(?:about|of)\s+me)?",
        _POLITE + r"(?:forget|delete|erase)\s+(?:me|(?:all\s+)?my\s+(?:memories|memory|data|facts))",
        _ES_POLITE
        + r"(?:olvida|olv[ií]date de|borra|elimina)\s+todo(?:\s+lo\s+que\s+(?:sabes|recuerdas))?"
        + r"(?:\s+(?:sobre|de|acerca de)\s+m[ií])?",
        _IT_POLITE
        + r"(?:dimentica|dimenticati|cancella|scorda)(?:\s+di)?\s+tutto"
        + r"(?:\s+(?:quello|ci[oò])\s+che\s+(?:sai|ricordi))?"
        + r"(?:\s+(?:su|di)\s+(?:di\s+)?me)?",
        _ZH_POLITE
        + r"(?:忘记|忘記|忘掉|删除|刪除|清除)(?:你)?(?:知道|记得|記得|记住|記住)?(?:的)?"
        + r"(?:关于|關於|有关|有關)?我?的?"
        + r"(?:一切|所有(?:信息|資訊|记忆|記憶|事情|事)?|全部)",
        r"(?:나|저|내)(?:에\s*대한|에\s*대해|에\s*관한)?\s*(?:아는\s*|기억하는\s*)?"
        r"(?:모든\s*(?:것|걸|정보|기억)|전부|다)(?:을|를)?\s*"
        r"(?:잊어|지워|삭제해)\s*(?:줘|주세요)?",
    )
)
_FORGET = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        _POLITE + r"forget\s+(?:that\s+|about\s+)?(?P<fact>(?:i|i['’]\w+|my|we|we['’]\w+|our)\b.+)",
        _POLITE
        + r"(?:forget|delete|erase|remove)\s+"
        + r"(?:what\s+you\s+(?:know|remember|stored|kept)|your\s+(?:note|memory))"
        + r"\s+(?:about|of|that)\s+(?P<fact>.+)",
        _POLITE + r"(?:don['’]?t|do not|stop)\s+remember(?:ing)?\s+that\s+(?P<fact>.+?)(?:\s+any\s*more)?",
        _ES_POLITE + r"(?:olvida|olvide|olv[ií]date\s+de|borra)\s+(?:que\s+|lo\s+de\s+que\s+)(?P<fact>.+)",
        _IT_POLITE + r"(?:dimentica|dimenticati|scorda|scordati|cancella)\s+che\s+(?P<fact>.+)",
        _ZH_POLITE + r"(?:忘记|忘記|忘掉|忘了|别再记得|別再記得|删除|刪除)[,\uff0c:\uff1a\s]*(?P<fact>我.+)",
        r"(?P<fact>.+?)(?:는|은)?\s*(?:것|걸|거|점|사실)(?:을|은)?\s*(?:이제\s*)?(?:잊어|지워|삭제해)\s*(?:줘|주세요|버려)?[.!]?",
        r"(?:bitte\s+)?vergiss[,\s]+dass\s+(?P<fact>.+)",
        r"(?:s['’]il (?:te|vous) pla[iî]t[,\s]+)?oublie\s+qu(?:e\s+|['’])(?P<fact>.+)",
    )
)
_LIST = tuple(
    re.compile(pattern + r"[\s.!?\u3002\uff01\uff1f]*", _FLAGS)
    for pattern in (
        r"what\s+(?:all\s+)?(?:do|did|have)\s+you\s+(?:know|remember(?:ed)?|stored?|kept|keep|saved?|learned|noted?)"
        r"\s+(?:about|of)\s+me",
        r"what\s+(?:do\s+you\s+remember|have\s+you\s+remembered|are\s+my\s+memories)",
        r"(?:please\s+)?(?:show|list|tell)\s+(?:me\s+)?(?:my\s+memories|(?:everything|all|what)\s+(?:that\s+)?you\s+"
        r"(?:know|remember|have\s+(?:stored|kept|saved|remembered))\s+about\s+me)",
        r"¿?\s*qu[eé]\s+(?:es\s+lo\s+que\s+)?(?:sabes|recuerdas|has\s+guardado)\s+(?:sobre|de|acerca\s+de)\s+m[ií]",
        _ES_POLITE
        + r"(?:mu[eé]strame|dime|ens[eé][nñ]ame)\s+(?:todo\s+)?lo\s+que\s+(?:sabes|recuerdas)"
        + r"\s+(?:sobre|de)\s+m[ií]",
        r"(?:che\s+)?cosa\s+(?:sai|ricordi|hai\s+memorizzato)\s+(?:su|di)\s+(?:di\s+)?me",
        _IT_POLITE
        + r"(?:mostrami|dimmi)\s+(?:tutto\s+)?(?:quello|ci[oò]|cosa)\s+(?:che\s+)?(?:sai|ricordi)"
        + r"\s+(?:su|di)\s+(?:di\s+)?me",
        r"(?:关于|關於)我[,,]?\s*你(?:都)?(?:知道|记得|記得|记住了|記住了)(?:些)?(?:什么|什麼|哪些)",
        r"你(?:都)?(?:知道|记得|記得|记住了|記住了|了解)(?:些)?(?:关于|關於)我的?(?:些)?"
        r"(?:什么|什麼|哪些(?:事|信息)?|事情|一切)",
        r"你对我(?:了解|知道|记得)(?:些)?(?:什么|多少|哪些)",
        r"(?:나|저)에\s*(?:대해|대해서|관해)\s*(?:무엇을|뭘|뭐를|뭐|어떤\s*것을)\s*(?:알고\s*있|기억하|알아|기억해).*",
        r"was\s+wei(?:ß|ss)t\s+du\s+über\s+mich",
        r"que\s+sais-tu\s+(?:de|sur)\s+moi",
    )
)
_QUESTION = re.compile(r"(?:[?\uff1f]|[吗嗎]\s*[?\uff1f.\u3002]?)\s*$")
_ASKED_POLITELY = re.compile(
    r"(?:can|could) you\s+(?:please\s+)?(?:remember|forget)\s+(?:that|everything)", _FLAGS
)
# Not said of the person, or not said as true: a quotation, a case that is only supposed.
_NOT_MEANT = re.compile(
    r"[\"“”«»„‘「『]|(?:if\b|suppose|imagine|what if|whether|in case|si\s|se\s|supongamos|immagina"
    r"|falls\b|wenn\b|如果|假如|假设|만약|혹시)",
    _FLAGS,
)


def memory_request(text: str) -> Request | None:
    """What a message explicitly asks of the memory, or None: to remember a fact, to forget one or all, or to
    tell what is kept."""
    said = " ".join(text.split())
    if len(said) > MAX_REQUEST_CHARS:
        return None
    if any(pattern.fullmatch(said) for pattern in _LIST):
        return Request(text="", action="list")
    if _QUESTION.search(said) and not _ASKED_POLITELY.match(said):
        return None
    asked = _QUESTION.sub("", said).strip()
    if any(pattern.fullmatch(asked) for pattern in _FORGET_ALL):
        return Request(text="", action="forget", everything=True)
    for pattern in _REMEMBER:
        fact = _fact(pattern, said)
        if fact:
            return Request(text=fact, kind=kind_of(fact), sensitive=is_sensitive(fact))
    for pattern in _FORGET:
        fact = _fact(pattern, said)
        if fact:
            return Request(text=fact, action="forget")
    return None


def _fact(pattern: re.Pattern[str], said: str) -> str:
    match = pattern.fullmatch(said)
    if match is None or _NOT_MEANT.match(match["fact"].strip()):
        return ""
    return re.sub(r"[.!?\u3002\uff01\uff1f\s]+$", "", match["fact"].strip())
