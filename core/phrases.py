"""Explicit memory phrases in several languages: what the memory step knows when there is no model."""

from __future__ import annotations

import re

from core.memory import Request

# Each pattern takes the whole message: "remember that ..." in mid-question is not a request to us.
# A question ("do you remember that ...?") is none either: see `_QUESTION`.
_POLITE = r"(?:please[,\s]+|can you\s+(?:please\s+)?|could you\s+(?:please\s+)?)?"
_REQUESTS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        _POLITE
        + r"(?:remember|note|keep in mind|don['’]?t forget)(?:\s+that)?[\s:,]+"
        + r"(?P<fact>(?:i|i['’]\w+|my|we|we['’]\w+|our)\b.+)",
        _POLITE + r"(?:remember|note)(?:\s+that|\s*:)\s*(?P<fact>.+)",
        r"(?:por favor[,\s]+)?(?:recuerda|recuerde|acu[eé]rdate de|ten en cuenta|no olvides)"
        r"\s+que\s+(?P<fact>.+)",
        r"(?:per favore[,\s]+)?(?:ricorda|ricordati|ricordi|tieni a mente|non dimenticare)"
        r"\s+che\s+(?P<fact>.+)",
        r"(?:请|請)?(?:你)?(?:记住|記住|记得|記得|别忘了|別忘了)[,,::\s]*(?P<fact>.+)",
        r"(?P<fact>.+?)(?:는|은)?\s*(?:것을|걸|거|점을)\s*(?:꼭\s*)?"
        r"(?:기억해\s*(?:줘|주세요|두세요|둬)?|잊지\s*마(?:세요)?)[.!]?",
        r"(?P<fact>.+?)(?:다고|라고)\s*(?:꼭\s*)?기억해\s*(?:줘|주세요|두세요|둬)?[.!]?",
        r"(?:bitte\s+)?(?:merke? dir|denk daran|vergiss nicht)[,\s]+dass\s+(?P<fact>.+)",
        r"(?:s['’]il (?:te|vous) pla[iî]t[,\s]+)?(?:souviens-toi|rappelle-toi|retiens|n['’]oublie pas)"
        r"\s+qu(?:e\s+|['’])(?P<fact>.+)",
    )
)
_QUESTION = re.compile(r"[??]\s*$")
_ASKED_AS_QUESTION = re.compile(r"(?:can|could) you\s+(?:please\s+)?remember\s+that", re.IGNORECASE)

# Words that make a fact a sensitive one (health, diet, belief, politics, sexuality, money).
_SENSITIVE = re.compile(
    r"vegan|vegetar|vegetal|halal|kosher|coeliac|celiac|allerg|alergi|intoleran|diabet|gluten|lactos|lattosio"
    r"|pregnan|embaraz|incinta|illness|disease|disab|cancer|depress|medic|health|salute|salud"
    r"|muslim|musulm|christian|cristian|jewish|ebre[oai]|jud[ií]|hindu|buddh|budist|religio|atheis"
    r"|gay|lesbian|transgender|bisexual|sexual|politic|salary|income|debt|stipendio|salario"
    r"|素食|吃素|清真|过敏|過敏|糖尿|怀孕|懷孕|疾病|宗教|佛教|基督|穆斯林"
    r"|채식|비건|할랄|알레르기|당뇨|임신|질병|종교|불교|기독교|이슬람",
    re.IGNORECASE,
)


def memory_request(text: str) -> Request | None:
    """The fact that a message explicitly asks to remember, or None."""
    stripped = text.strip()
    if _QUESTION.search(stripped) and not re.match(
        r"(?:can|could) you\s+(?:please\s+)?remember\s+that", stripped, re.I
    ):
        return None
    for pattern in _REQUESTS:
        match = pattern.fullmatch(stripped)
        if match:
            fact = re.sub(r"[.!?。!?\s]+$", "", match["fact"].strip())
            if fact:
                return Request(text=fact, sensitive=is_sensitive(fact))
    return None


def is_sensitive(fact: str) -> bool:
    """Whether a fact names something that a person should confirm before it is kept."""
    return _SENSITIVE.search(fact) is not None
