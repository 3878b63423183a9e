"""Tells whether an item's text speaks to whoever scores it: gives orders about scores, others or the reply.

No model is asked. The text is brought into one plain form first (hidden characters and marks on letters
taken out, look-alike and spaced-out letters, entities and other encodings undone); then words for the
scoring, for the other items, for commands and for the form of the reply are looked for near each other, in
seventeen languages. It finds what people write, not everything that can be written: what rests on it is said
in docs/security.md.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from core.documents import Candidate, Version
from core.prompting.variables import Value

KEPT = 20_000
SHORT = 80  # a field no longer than this may be one piece of a sentence spread over several


# Characters that show nothing: joiners, direction marks, soft hyphens, variation selectors, blank fillers.
# The block of "tags" repeats ASCII invisibly: it is read as what it stands for.
_SPECIAL: dict[int, str | int | None] = {
    **dict.fromkeys([0xAD, 0x61C, 0x115F, 0x1160, 0x180E, 0x2800, 0x3164, 0xFEFF, 0xFFA0]),
    **dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)]),
    **{0xE0000 + code: chr(code) for code in range(0x20, 0x7F)},
    ord("ı"): "i",
    ord("ɑ"): "a",
    ord("ɡ"): "g",
}
# By their names: letters that are a Latin one in another shape and have no decomposition.
_SHAPED = re.compile(
    r"(?:LATIN LETTER SMALL CAPITAL|REGIONAL INDICATOR SYMBOL LETTER|MODIFIER LETTER SMALL"
    r"|NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER|LATIN (?:SMALL|CAPITAL) LETTER) ([A-Z])(?: WITH .*)?"
)


class _Bare(dict[int, str | int | None]):
    """For `str.translate`: marks on letters (accents, vowel signs, enclosing circles) vanish, letters in
    another shape become plain ones, all else stays. Filled as characters are met."""

    def __missing__(self, code: int) -> str | int | None:
        found: str | int | None = code
        if unicodedata.category(chr(code)).startswith("M"):
            found = None
        elif shaped := _SHAPED.fullmatch(unicodedata.name(chr(code), "")):
            found = shaped[1].lower()
        self[code] = found
        return found


_BARE = _Bare(_SPECIAL)


def _bare(text: str) -> str:
    """Without hidden characters and marks on letters."""
    return text if text.isascii() else _composed(unicodedata.normalize("NFKD", text).translate(_BARE))


def _composed(text: str) -> str:
    """Syllables of Korean in one character again."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _words(listed: str) -> tuple[str, ...]:
    """Parts of words, separated by commas; `_` stands where a word must begin or end."""
    parts = (" ".join(one.split()) for one in _bare(listed).casefold().split(","))
    return tuple(dict.fromkeys(one.replace("_", " ") for one in parts if one))


# As `_plain` and `_spaced` leave texts: small letters without accents, a space on both sides of each number.
_SCORE = _words(
    """_score_, _scores_, _scoring_, _rank_, _ranks_, _ranking_, _rate_, _rating, _grade_, _point_,
    _points_, _marks_, punteggi, _punti_, _voto_, _valuta, classific, puntua, puntaj, _puntos_, califi,
    _nota_, _notas_, pontua, _pontos_, punktzahl, _punkt, bewert, _wertung, _note_, _notes_, _notez_,
    _noter_, attribue, classez, _score, beoordeel, 评分, 評分, 分数, 分數, 打分, 得分, 排名, 排序, 给分,
    零分, 满分, 滿分, 0 分, スコア, 点数, 得点, 採点, 評価, 0 点, 零点, 満点, 점수, 평점, 순위, 0 점,
    영점, 만점, оцен, балл, рейтинг, _ocen, _punkty, puan, درجة, تقييم, poang, betyg, rangordn, poeng,
    _punten_, _cijfer_, _diem_, xep hang, danh gia, _अंक_, स्कोर, रैंक, मूल्यांकन, _نقطة_, _نقاط_, علامة,
    _marking_, relevance, relevanz, rilevanza, relevancia, pertinence"""
)
_OTHERS = _words(
    """_other_, _others_, _the rest_, _remaining_, _else_, competit, _rival, _neighbor, _neighbour,
    _all items_, _all the items_, _all results_, _all the results_, _every item_, _every result_,
    _everything_, _altri_, _altre_, _altro_, _altra_, _tutti_, _tutte_, _resto_, restant, rimanent,
    concorren, _otros_, _otras_, _otro_, _otra_, _demas_, _todos_, _todas_, _outros_, _outras_, _demais_,
    _andere_, _anderen_, _anderes_, _anderer_, _ubrig, _restlich, konkurren, _alle_, _allen_, _autres_,
    _autre_, _tous les_, _toutes les_, _le reste_, concurren, _overige_, 其他, 其它, 其余, 其餘, 别的,
    別的, 所有, 他の, ほか, 残り, 全て, すべて, 다른, 나머지, 그 외, 기타, 모든, друг, остальн, _все_,
    _всем_, _всех_, _inne_, _innym_, _innych_, pozostal, _diger, _baska, _kalan, الاخرى, الأخرى, باقي,
    بقية, _companion, _counterpart, _peers_, _whatever surrounds, _surrounding it_, _around it_,
    _alternatives_, _den rest_, _dem rest_, _der rest_, _andra_, _ovriga_, _resten_, _andre_, _de rest_,
    _hepsi, _geri kalan, _otekiler, _khac_, con lai, tat ca cac, _बाकी_, _अन्य_, _दूसरे_, _दूसरों_,
    _शेष_, _सभी_, _غيره, الآخرين, سواه"""
)
_LOWEST = _words(
    """_0_, _zero_, _zeros_, _zeroes_, _nothing_, _null_, _nul_, _cero_, _nada_, _niente_, _rien_,
    lowest, minim, _last_, _bottom_, _ultimo_, _ultimi_, _ultimos_, mas baj, niedrigst, _letzte,
    _nichts_, plus bas, _dernier, mais baix, 零分, 零, 最低, ゼロ, 최저, 영점, ноль, _ноля_, нулев,
    _нуля_, миним, najnizs, _sifir_, en dusuk, صفر, _naught_, _nought_, _nil_, _noll_, _ingenting_,
    lagst, _niets_, laagst, khong diem, _so khong_, thap nhat, _शून्य_, _ज़ीरो_, न्यूनतम, _en az_, ادنى"""
)
_IGNORE = _words(
    """_ignor, disregard, _forget_, overrid, overrul, bypass, supersed, dimentica, trascura, _olvid,
    caso omiso, no hagas caso, esquec, desconsider, vergiss, vergessen, missacht, beachte nicht, _oublie,
    pas compte, negeer, vergeet, игнорир, забудь, 忽略, 忽视, 忽視, 无视, 無視, 忘记, 忘記, 忘掉, 忘れ,
    무시, 잊어, 잊고, zignoruj, zapomnij, yok say, _unut, goz ardi, تجاهل, _bortse_, _glom_, ignorer,
    _gormezden, dikkate alma, bo qua moi, bo qua cac, bo qua tat ca, _hay quen, अनदेखा, नजरअंदाज,
    नज़रअंदाज़, भूल जा, ध्यान न, _انس_, _انسى_"""
)
_INSTRUCTION = _words(
    """instruct, instruc, instruk, _prompt, guideline, directive, _rule_, _rules_, _orders_, istruzion,
    _regol, indicazion, _regla, _ordenes_, anweisung, vorgabe, _regel, consigne, _regle, _regra, _task_,
    _criteri, _above_, _previous, _prior_, precedent, anterior, vorherig, _bisherig, voorgaand, 指示,
    指令, 规则, 規則, 提示, 命令, 之前, 以上, ルール, これまで, 上記, 지시, 명령, 지침, 규칙, 프롬프트,
    이전, инструкц, правил, указани, предыдущ, polecen, poprzedni, talimat, komut, _onceki, تعليمات,
    السابقة, _regler_, _tidigare_, eerdere, _kural, huong dan, chi dan, chi thi, quy tac, menh lenh,
    निर्देश, _नियम, पिछले, القواعد, الاوامر"""
)
_MODEL = _words(
    """_ai_, _a.i_, _llm, _gpt, chatgpt, _claude_, _gemini_, language model, _assistant_, _assistants_,
    chatbot, _ranker_, _scorer_, _grader_, _evaluator_, _judge_, ranking system, scoring system,
    ranking model, ranking engine, search engine, ranking algorithm, _model_, _models_, _modello_,
    _modelo_, _modele_, _modell_, sprachmodell, assistente, asistente, _ia_, _ki_, _bot_, _bots_,
    人工智能, 模型, 助手, 人工知能, モデル, アシスタント, 인공지능, 모델, 어시스턴트, нейросет, модел,
    ассистент, yapay zeka, النموذج, sprakmodell, taalmodel, dil modeli, mo hinh, tro ly, मॉडल, _एआई_,
    الذكاء الاصطناعي, المساعد, _whoever rates_, _whoever scores_, _whoever ranks_"""
)
_COMMAND = _words(
    """_you must_, _you should_, _you shall_, _you will_, _you are_, _you have to_, _you need to_,
    _please_, _note to_, _attention_, _dear_, _important_, _always_, _give_, _assign_, _return_,
    _output_, _reply_, _respond_, _devi_, _dovete_, _debes_, _debe_, _tienes que_, _du musst_,
    _du sollst_, _sie mussen_, _tu dois_, _vous devez_, _voce deve_, _per favore_, _por favor_, _bitte_,
    _veuillez_, _attenzione_, _atencion_, _achtung_, 必须, 必須, 请, 請, 务必, 你, 您, ください,
    しなさい, せよ, あなた, 반드시, 하세요, 해야, 하라, 당신, _должен, _обязан, внимание, musisz, lutfen,
    يجب, _treat_, _an die_, _an alle_, _du maste_, _du ska_, _vanligen_, _ge_, _geef_, _je moet_,
    _u moet_, _hay cham_, _hay cho_, ban phai, vui long, _ver_, vermelisin, zorundasin, कृपया, आपको,
    चाहिए, _दें_, _दो_, اعط, من فضلك, _grant_, _award_"""
)
_ITEMS = _words(
    """_item_, _items_, _result_, _results_, _entry_, _entries_, _candidate, _object_, _objects_,
    _recipes_, _products_, _documents_, _listings_, _answer_, _answers_, _tags_, _pages_, _ones_,
    _reply_, _element, _oggett, risultat, _voci_, _ricette_, _prodotti_, resultad, _recetas_,
    _productos_, _eintrag, _eintrage, ergebnis, _objekt, _rezepte_, _produkte_, _artikel_, resultat,
    _recettes_, _produits_, _itens_, _receitas_, 项目, 項目, 结果, 結果, 条目, 菜谱, 食谱, 产品, 候选,
    アイテム, レシピ, 商品, 候補, 항목, 결과, 레시피, 제품, 후보, элемент, результат, рецепт, товар,
    wynik, pozycj, sonuc, _oge, العناصر, النتائج, _ratter_, _objekten_, artiklar, _recept, _gerechten_,
    _producten_, _urun, _tarif, ket qua, cong thuc, san pham, आइटम, परिणाम, व्यंजन, उत्पाद, _matches_"""
)
_TAG = _words("""_tag_, _tags_, etichett, etiquet, _kennung, 标签, 標籤, タグ, 태그, _тег""")
_SWAP = _words(
    """swap, _exchange the, _exchange tag, _switch, permut, shuffl, _mix_, _mixed_, replac, _wrong_,
    revers, scambi, invert, intercambi, _cambia, tausch, echang, _troque, _troca, 交换, 交換, 调换, 互换,
    入れ替え, 바꿔, 바꾸, 교환, поменя, zamien, degistir"""
)
_STOP = _words(
    """_stop_, _halt_, _quit_, _finish_, _end_, fermati, _smetti, _deten, _para_, _hor auf_, aufhoren,
    _stopp, _arret, _pare_, 停止, 停下, 结束, 止め, やめ, 終わ, 멈춰, 멈추, 중단, останов, zatrzymaj,
    _dur_, _cut off_, _sluta_, _stanna_, _ophouden_, dung lai, रुक, توقف"""
)
_FIRST = _words(
    """_after the first_, _after first_, _after this_, _after one_, _at the first_, _after your first_,
    dopo il primo, dopo la prima, dopo questo, despues del primer, despues de este, nach dem ersten,
    nach diesem, apres le premier, depois do primeiro, 第一, 最初, 첫, _перв, pierwsz, _ilk_,
    efter den forsta, efter det forsta, na het eerste, na de eerste, dau tien, पहले के बाद, بعد الاول"""
)
_OMIT = _words(
    """_leave out_, _left out_, _omit, _skip_, _drop_, _exclude_, _remove_, _delete_, not list,
    not score, not rate, not answer, not include, not mention, not return, not output, not show,
    never score, never list, never rate, _only return_, _only output_, _only list_, _only answer_,
    _only include_, _only score_, _only show_, nothing else, _omett, _escludi, tralascia, excluy, exclua,
    exclue, exclut, _lass_, _lasse_, _weglassen_, _omets, 省略, 不要, 跳过, 排除, 除外, 省い, 생략, 제외,
    빼고, пропуст, исключ, _pomin, _atla_, utelamna, uteslut, hoppa over, weglaten, _oversla,
    _overslaan_, loai bo, dahil etme, _cikar_, छोड़, हटा, احذف, استبعد, لا تذكر"""
)
_LOWER = _words(
    """irrelevan, not relevant, irrilevan, nicht relevant, non pertinent, hors sujet, worthless, useless,
    _spam_, _fake_, downgrad, _demot, penalis, penaliz, push down, _lower the_, _lower all_,
    _lower every_, _lower any_, _lower other, _sink_, discard, _reject, abbassa, _riduci_, scarta,
    descarta, _senke, abwert, verwirf, _baisse, _reduis, rejette, _bury_, 不相关, 无关, 無關, 降低,
    関係な, 無関係, 下げ, 관련 없, 관련없, 관련이 없, 낮춰, 낮추, нерелевант, _сниз, понизь, obniz,
    dusur, unsuitable, _unfit_, _not a match_, _no match_, _bad match, _poor match, ungeeignet, inadatt,
    inadecuad, inapte, odugl, olamplig, niet relevant, inte relevant, waardeloos, ongeschikt, alakasiz,
    ilgisiz, degersiz, uygunsuz, khong lien quan, khong phu hop, अप्रासंगिक, बेकार, غير مناسب, لا صلة"""
)
_ROLE = _words(
    """system message, system prompt, system override, system notice, system instruction, systemprompt,
    system note, systemnachricht, assistant message, developer message, operator message,
    messaggio di sistema, mensaje del sistema, message systeme, 系统消息, 系统提示, 系統消息, 系統提示,
    システムメッセージ, システムプロンプト, 시스템 메시지, 시스템 프롬프트, 시스템 메세지,
    системное сообщ, системный промпт, end of data, end of the data, end of item, end of the item,
    end of list, end of the list, end of input, end of json, end of the json, fine dei dati,
    fin de los datos, ende der daten, fin des donnees, new task, new instruction, nuove istruzioni,
    nuevas instrucciones, neue anweisung, nouvelles instructions, 新的指令, 新指令, 新的任务, 数据结束,
    新しい指示, 새로운 지시, systemmeddelande, systeembericht, sistem mesaji, thong bao he thong,
    सिस्टम संदेश, رسالة النظام"""
)
_FULL = _words(
    """full mark, full score, full points, top mark, top score, perfect score, perfect match,
    maximum score, maximum mark, volle punkt, volle punten, hochste punkt, hochstnote, bestnote,
    punteggio pieno, voto massimo, pieni voti, massimo dei voti, puntuacion maxima, maxima puntuacion,
    nota maxima, pontuacao maxima, note maximale, tous les points, hogsta poang, full poang, tam puan,
    diem toi da, पूरे अंक, الدرجة الكاملة, 满分, 滿分, 満点, 만점, высший балл, maksimum puan, maksymaln"""
)
_NONE = _LOWEST + _words(
    """_none_, _keine_, _keinen_, _kein_, _nessun, _ningun, _nenhum, _aucun, _geen_, _inga_, _ingen_,
    _inget_, _hicbir"""
)
_DESCRIBE = _words(
    """_describe_, _description_, _descriptions_, portray, _label_, _mention_, _say that_, _say the_,
    _call the_, _call all_, _call every_, _claim that_, _tell readers_, _write that_, _warn that_,
    _report that_, _descriv, _describ, beschreib, _schreibe_, nenne, _decri, _descrev, _mentionne, 描述,
    说明, 說明, 形容, 説明, 書い, 설명, 묘사, 말해, _опиши, описыв, _скажи, _beskriv, _beschrijf,
    _omschrijf, mo ta, वर्णन, बताओ, बताएं, _صف_, _وصف, tanimla, betimle, _opisz, _opisuj"""
)
_ILL = _words(
    """out of stock, sold out, unavailable, discontinu, unsafe, dangerous, poison, toxic, expired,
    recalled, _spoiled_, contaminat, counterfeit, _scam, fraud, illegal, inferior, disgusting, _bad_,
    _worse, harmful, esaurit, pericolos, velenos, scadut, agotad, peligros, caducad, ausverkauft,
    gefahrlich, giftig, ungenie, epuise, dangereu, perime, esgotad, perigos, vencid, slutsal, farlig,
    uitverkocht, gevaarlijk, bedorven, tukenmis, tehlikeli, bozuk, het hang, nguy hiem, doc hai,
    khong an toan, खतरनाक, असुरक्षित, जहरील, نفد, خطير, غير آمن, 售罄, 缺货, 缺貨, 危险, 危險, 有毒,
    过期, 売り切れ, 在庫切れ, 危険, 품절, 위험, распродан, опасн, ядовит, wyprzedan, niebezpieczn"""
)
_JUDGE = _words(
    """_treat_, _consider_, _regard_, _deem_, _declare_, _mark_, _count_, _judge_, _rate_, betracht,
    behandle, considera, _tratta_, _trata, traite, juge, anse, betrakta, beschouw, behandel, _kabul et,
    _say_, _coi_, _xem_, समझो, मानो, اعتبر, 视为, 視為, 当作, 當作, 見なし, みなし, 간주, считай,
    traktuj, uznaj"""
)

Rule = tuple[tuple[str, ...], Sequence[tuple[tuple[str, ...], int]]]

# One word of the first group, and one of each other group within so many characters of it.
_RULES: Sequence[Rule] = (
    (_LOWEST, ((_OTHERS, 32), (_SCORE, 120))),
    (_IGNORE, ((_INSTRUCTION, 50),)),
    (_MODEL, ((_COMMAND, 100), (_SCORE + _OMIT + _LOWER, 100))),
    (_ROLE, ((_SCORE + _OTHERS + _IGNORE + _COMMAND, 160),)),
    (_TAG, ((_SWAP, 40), (_ITEMS + _OTHERS, 80))),
    (_FIRST, ((_STOP, 40), (_ITEMS, 80))),
    (_OMIT, ((_OTHERS, 40), (_ITEMS, 60))),
    (_LOWER, ((_OTHERS, 60), (_ITEMS, 60))),
    (_LOWER, ((_OTHERS, 40), (_JUDGE, 40))),
    (_FULL, ((_OTHERS, 70), (_NONE, 90))),
    (_DESCRIBE, ((_OTHERS, 40), (_ILL, 80))),
)
# The same for texts that have no other letters: half the words to look for.
_ASCII_RULES: Sequence[Rule] = tuple(
    (
        tuple(filter(str.isascii, first)),
        tuple((tuple(filter(str.isascii, group)), width) for group, width in others),
    )
    for first, others in _RULES
)
# What no shop, cook or journalist writes by chance, each with words of which any match has one.
_SIGNS: Sequence[tuple[tuple[str, ...], re.Pattern[str]]] = tuple(
    (needles, re.compile(pattern, re.DOTALL))
    for needles, pattern in (
        (
            ("data-", "<|", "|>", "inst]", "sys>>", "system"),
            r"</?\s*data-|<\||\|>|\[/?inst\]|<</?sys>>|</?system>",
        ),
        (
            ("##", "system:", "assistant:"),
            r"##\s?(?:system|instruction|assistant)\b|\b(?:system|assistant):.*\bscore",
        ),
        (("tag",), r"[\"']tag[\"']\s*:"),
        (("score",), r"[\"']score[\"']\s*:.{0,200}[\"'](?:score|description|items)[\"']\s*:"),
        (("items", "results"), r"[\"'](?:items|results)[\"']\s*:\s*\["),
        (
            ("relevan", "score", "rating", "rank", "points"),
            r"[\"'](?:relevan\w+|score|rating|rank|points)[\"']\s*:\s*[\"']?\d.{0,200}"
            r"[\"'](?:relevan\w+|score|rating|rank|points)[\"']\s*:",
        ),
        (
            ("relevan",),
            r"(?:\b(?:zero|full|maxim\w+|minim\w+|lowest|highest|hundred)|(?<!\d)(?:100|0)) (?:\w+ )?relevan"
            r"|\brelevan\w+ (?:score )?(?:of |to |is |at |must be |should be )+"
            r"(?:zero|0\b|100\b|lowest|highest)",
        ),
        (
            ("nothing", "none", "nobody", "no other", "no one"),
            r"\b(?:nothing|none|nobody|no other|no one)\b.{0,50}?"
            r"\b(?:deserv|merit|earn|receiv|get|scor|rank|rat)\w*\b.{0,20}?"
            r"\b(?:more than|above|over|higher than|beyond|at most) \d",
        ),
        (
            ("describe ", "portray ", "label "),
            r"(?:^|[.!?:;,] |\bplease )(?:describe|portray|label) (?:all |every |each |any |the |its )*"
            r"(?:others?|rest|remaining|competing|competitors?|companions?|neighbou?rs?|rivals?)\b",
        ),
        (
            ("score ", "rank ", "rate ", "grade "),
            r"\b(?:score|rank|rate|grade) (?:me|this|it|us)\b.{0,40}?"
            r"(?:(?<!\d)100(?!\d)|hundred|maximum|highest|\bfirst\b)",
        ),
        (
            ("give ", "assign ", "award ", "set "),
            r"\b(?:give|assign|award|set) .{0,40}?\bscores? .{0,20}?"
            r"(?:(?<!\d)(?:100|0)(?![\d.,]*\d)|hundred|zero|maximum|highest|lowest)"
            r"|\b(?:give|assign|award) .{0,40}?(?:(?<!\d)100(?!\d)|hundred|maximum|highest).{0,12}?"
            r"\b(?:score|rating|points)",
        ),
        (
            ("other", "else", "rest"),
            r"\b(?:others?(?! than)|everything else|anything else|the rest)\b(?:\W+(?!a )\w+){0,4}?\W+"
            r"(?:0(?![\d.,%])|zero)\b",
        ),
        (
            ("100",),
            r"(?:\bdai|\bassegna\w*|\bdare|\bda|\basigna\w*|\botorga\w*|\bgib|\bvergib|\bdonne\w*|\battribue\w*|\batribua|"
            r"\bgeef) .{0,60}?(?<!\d)100(?!\d).{0,30}?(?:punt|point|pont|score)"
            r"|(?:punteggio|puntuacion|puntaje|punktzahl|pontuacao)\b.{0,25}?(?<!\d)100(?!\d)(?!\s?%)"
            r"|[给給打].{0,20}?100\s*分|100\s*점.{0,6}?(?:줘|주|매기|부여)|100\s*点.{0,6}?(?:与え|付け|つけ|にし)",
        ),
    )
)


class Screen:
    """Remembers what it found of the latest `KEPT` items: the same few are candidates again and again."""

    def __init__(self) -> None:
        self._found: dict[tuple[Version, int], bool] = {}

    def suspects(self, candidate: Candidate, shown: Callable[[Candidate], Value]) -> bool:
        """Whether what a prompt shows of the candidate speaks to the model."""
        key = (candidate.document.key, candidate.n)
        found = self._found.pop(key, None)
        if found is None:
            found = speaks_to_the_model(shown(candidate))
            while len(self._found) >= KEPT:
                del self._found[next(iter(self._found))]
        self._found[key] = found
        return found


def speaks_to_the_model(seen: Value) -> bool:
    """Whether a text of `seen`, an item as a prompt shows it, is meant for the model and not for readers."""
    fields = list(_texts(seen))
    return any(_orders(text) for text in _readings(fields))


def _texts(value: object) -> Iterator[str]:
    """Every text of an item, and names of properties that are more than a word."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if " " in str(key):
                yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _readings(fields: Sequence[str]) -> Iterator[str]:
    """The item's text as it may be read: whole, without its long fields, backwards, with what is encoded
    undone."""
    whole = " ".join(fields)
    plain = _plain(whole)
    yield plain
    if any(word in plain for word in _BACKWARDS):
        yield plain[::-1]
    short = [text for text in fields if len(text) <= SHORT]
    if 1 < len(short) < len(fields):
        yield _plain(" ".join(short))
    if _LETTERS_APART.search(plain):
        yield _LETTERS_APART.sub(lambda run: f" {_BETWEEN.sub('', run[0])} ", plain)
        yield _LETTERS_APART.sub(lambda run: f" {_words_of(_BETWEEN.sub('', run[0]))} ", plain)
    if _DIGIT_BY_LETTER.search(plain) and _DIGIT_FOR_LETTER.search(plain):
        for digits in _LETTERS_OF:
            yield _with_letters(plain, digits)
    if not plain.isascii() and (alike := plain.translate(_ALIKE)) != plain:
        yield alike
    if any(word in plain for word in _ROT13):
        yield codecs.encode(plain, "rot13")
    for decoded in _undone(whole, 2):
        yield _plain(decoded)


def _with_letters(plain: str, of: Mapping[int, int]) -> str:
    """The text with letters for the digits of each word that has both."""
    return _MIXED.sub(lambda found: found[0].translate(of), plain)


def _plain(text: str) -> str:
    """Small letters without marks; entities undone, hidden characters taken out, white space folded."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    return " ".join(_bare(text).casefold().split())


def _words_of(run: str) -> str:
    """Letters that stood apart have lost where words end: it is put back around the words looked for."""
    return _KNOWN.sub(lambda found: f" {found[0]} ", run)


def _undone(text: str, times: int) -> Iterator[str]:
    """What the text says where it is encoded, or what that says, so many times."""
    for decoded in _decodings(text):
        yield decoded
        if times > 1:
            yield from _undone(decoded, times - 1)


def _decodings(text: str) -> Iterator[str]:
    if "\\" in text or "U+" in text:
        yield _ESCAPE.sub(lambda found: _character(found[found.lastindex or 0]), text)
    if "%" in text and (unquoted := unquote(text)) != text:
        yield unquoted
    for run in _HEX.findall(text):
        if said := _said(_from_hex(run)):
            yield said
    for run in _BASE64.findall(text):
        # A word after the run may be its last line or not.
        for one in dict.fromkeys((run, run.rsplit(None, 1)[0])):
            if said := _said(_from_base64(one)):
                yield said
                break


def _character(code: str) -> str:
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else ""


def _from_hex(run: str) -> bytes:
    digits = _NO_HEX.sub("", run)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _from_base64(run: str) -> bytes:
    letters = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _said(decoded: bytes) -> str:
    """The text in bytes, "" if they are none."""
    try:
        said = decoded.decode()
    except UnicodeDecodeError:
        return ""
    return said if said.replace("\n", " ").replace("\t", " ").isprintable() else ""


def _orders(plain: str) -> bool:
    for needles, sign in _SIGNS:
        if any(needle in plain for needle in needles) and sign.search(plain):
            return True
    text = _spaced(plain)
    rules = _ASCII_RULES if text.isascii() else _RULES
    return any(_near(text, rule) for rule in rules)


def _spaced(plain: str) -> str:
    """The words with one space on both sides of each, and of each number, and no punctuation."""
    bare = _NUMBER.sub(lambda found: f" {found[0]} ", plain.translate(_PUNCTUATION))
    return f" {' '.join(_STOPS.sub(' ', bare).split())} "


def _near(text: str, rule: Rule) -> bool:
    """Whether the rule's words stand near each other."""
    first, others = rule
    for word in first:
        at = text.find(word)
        while at >= 0:
            if all(_around(text, at, at + len(word), group, width) for group, width in others):
                return True
            at = text.find(word, at + 1)
    return False


def _around(text: str, start: int, end: int, group: Sequence[str], width: int) -> bool:
    around = text[max(0, start - width) : end + width]
    return any(word in around for word in group)


_PUNCTUATION = str.maketrans(
    dict.fromkeys("!\"#$%&'()*+/:;<=>?@[\\]^_`{|}~，。、；：！？（）「」『』【】“”‘’«»¿¡…—–", " ")
)
_NUMBER = re.compile(r"\d(?<![\d.,]\d)\d*(?:[.,]\d+)*")
_STOPS = re.compile(r"[.,](?:(?<!\d.)|(?!\d))")
# Cyrillic, Greek, Armenian and Cherokee letters that look like Latin ones.
_ALIKE = str.maketrans(
    "асеорхуіјѕԁһмктнвαεικορτυχνοսհօᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃᎽ",
    "aceopxyijsdhmktnbaeikoptuxvouhoabcdeghijklmprstvwzy",
)
_LETTERS_APART = re.compile(
    r"[^\W_](?=[\W_])(?<![^\W_][^\W_])[\W_]{1,3}(?:[^\W_][\W_]{1,3}){3,}[^\W_](?![^\W_])"
)
_KNOWN = re.compile(
    "|".join(
        sorted(
            {re.escape(word.strip()) for first, _ in _ASCII_RULES for word in first if len(word.strip()) > 3}
            | {re.escape(word.strip()) for word in _SCORE + _OTHERS + _ITEMS if len(word.strip()) > 3}
            | {r"\d+"},
            key=len,
            reverse=True,
        )
    )
)
_BETWEEN = re.compile(r"[\W_]+")
# A digit inside of a word, not the "pt1h30m" of a duration nor the "500ml" of a measure.
_DIGIT_FOR_LETTER = re.compile(
    r"\b(?!pt?\d)[a-z\d]*(?:[a-z]\d+[a-z]|\d[a-z]+\d)|\b\d[a-z]{4}|\b[a-z]{3,}\d\b"
)
_MIXED = re.compile(r"\b(?=[a-z\d@$]*[a-z])[a-z\d@$]*\d[a-z\d@$]*")
_LETTERS_OF = (str.maketrans("01345789@$", "oieastbgas"), str.maketrans("01345789@$", "oleastbgas"))
_DIGIT_BY_LETTER = re.compile(r"\d(?:[a-z]|(?<=[a-z].))")
# One of these is in most orders: what has none of them backwards (in the cipher) is not read so.
_TELLING = _words(
    """score, rank, rating, grade, points, marks, ignor, instruct, other, relevan, system, describe,
    else, punt, pont, punkt, bewert, altri, andere, autres, otros, outros, dimentic, vergiss, oubli,
    olvid, poang, puan, diem, оцен, балл, игнор, 分, 点, 忽略, 無視, 점, 무시, _अक_, درجه, تقييم"""
)
_BACKWARDS = tuple(word[::-1] for word in _TELLING)
_ROT13 = tuple(codecs.encode(word, "rot13") for word in _TELLING if word.isascii())
_ESCAPE = re.compile(
    r"(?:\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\U([0-9a-fA-F]{8})"
    r"|U\+([0-9a-fA-F]{4,6})\s?)"
)
_HEX = re.compile(r"[0-9a-fA-F]{2}(?:[ :,]{0,2}(?:0x)?[0-9a-fA-F]{2}){11,}")
_NO_HEX = re.compile(r"0x|[ :,]")
# In one piece of 24 letters, or in lines of at least 12.
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_-]{12,}(?:(?:={0,2}\s+[A-Za-z0-9+/_-]{12,})*={0,2}\s+[A-Za-z0-9+/_-]+|(?<=[^\s]{24}))={0,2}"
)
