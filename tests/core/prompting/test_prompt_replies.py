"""Replies of every shape models send: the right value, or a named miss; never NaN, never another error."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadModelReply
from core.prompting import REFS, ReplySchema
from core.prompting.examples import misses
from core.prompting.replies import shape_of

RANKING = ReplySchema.of("RankingPrompt", {"score": "integer between 0 and 100", "description": "short text"})
MEMORY = ReplySchema.of(
    "DetectMemoryRequestPrompt",
    {
        "is_memory_request": "True or False",
        "action": "remember | forget | list",
        "memory_request": "what to keep",
        "sensitive": "True or False",
    },
)
ANSWER = ReplySchema.of("SynthesizePromptForGenerate", {"answer": "string", "urls": "urls of the items"})
FACTS = ReplySchema.of("MemoryExtractionPrompt", {"facts": [{"text": "one", "kind": "preference | fact"}]})

MISS = type("Miss", (), {"__repr__": lambda _: "a miss"})()

SCORES: list[tuple[str, Any]] = [
    # as asked, and around it
    ('{"score": 80, "description": "x"}', 80),
    ('```json\n{"score": 80}\n```', 80),
    ('```\n{"score": 80}\n```', 80),
    ('~~~json\n{"score": 80}\n~~~', 80),
    ('Here is my rating:\n\n{"score": 80}\n\nHope this helps! {smile}', 80),
    ('\ufeff{"score": 80}', 80),
    ('"{\\"score\\": 80}"', 80),
    ('{"result": {"score": 80}}', 80),
    ('[{"score": 80}]', 80),
    ('{"items": [{"tag": "a", "score": 80}]}', 80),
    ('{"Score": 80}', 80),
    ('{"SCORE ": "80"}', 80),
    # thinking
    ('<think>maybe {"score": 5}?</think>{"score": 90}', 90),
    ('maybe {"score": 5}?</think>\n{"score": 90}', 90),
    ('<thinking>\nlong\n</thinking>\n```json\n{"score": 90}\n```', 90),
    ('{"score": 90}\n<think>was that right?</think>', 90),
    ('<think>{"score": 5} and so on', MISS),
    # broken JSON
    ("{'score': 80, 'description': 'it''s'}", 80),
    ('{"score": 80,}', 80),
    ('{score: 80, description: "x"}', 80),
    ('{"score": 80 "description": "x"}', 80),
    ('{"score": 80, // good\n "description": "x"}', 80),
    ('{"score": 80, "description": "a\nb"}', 80),
    ("{“score”: 80}", 80),
    # several
    ('{"score": 10} no, rather {"score": 80}', 80),
    ('{"score": 80} {"note": "done"}', 80),
    ('{"score": 80} and {"score": ', 80),
    ('{"score": 10} then {"score": 80,}', 80),
    # cut off
    ('{"score": 80, "description": "A hearty', 80),
    ('{"score": 80, "desc', 80),
    ('```json\n{"score": 80,', 80),
    ('{"score": 8', MISS),
    ('{"score":', MISS),
    ('{"description": "good"', MISS),
    # the score itself
    ('{"score": "85"}', 85),
    ('{"score": 85.0}', 85),
    ('{"score": 84.5}', 85),
    ('{"score": "85/100"}', 85),
    ('{"score": "85 out of 100"}', 85),
    ('{"score": "4/5"}', 80),
    ('{"score": "8 / 10"}', 80),
    ('{"score": "85%"}', 85),
    ('{"score": "85,5"}', 86),
    ('{"score": "８５"}', 85),
    ('{"score": "~85"}', 85),
    ('{"score": "80-90"}', 85),
    ('{"score": 150}', 100),
    ('{"score": "1,000"}', 100),
    ('{"score": -3}', 0),
    ('{"score": "-3"}', 0),
    ('{"score": "−3"}', 0),
    ('{"score": 2.0}', 2),
    ('{"score": "2.0"}', 2),
    ('{"score": 5}', 5),
    ('{"score": "8.5e1"}', 85),
    ('{"score": [85]}', 85),
    ('{"score": {"value": 85}}', 85),
    ('{"score": "The relevance is 42."}', 42),
    ('{"score": "On a scale of 0 to 100, I give 42"}', 42),
    ('{"score": "score: 42 (3 of 5 conditions)"}', 42),
    ('{"score": "Score 70. It has 3/5 of the ingredients"}', 70),
    ('{"score": "3 of 4 wishes are met: 85/100"}', 85),
    ('{"score": "I would say 4/5"}', 80),
    ('{"score": "42, as 3 of its 7 parts fit"}', 42),
    ('{"score": "**42**"}', 42),
    ('{"score": 1' + "0" * 400 + "}", 100),
    ('{"score": NaN}', MISS),
    ('{"score": Infinity}', MISS),
    ('{"score": 1e999}', MISS),
    ('{"score": "NaN"}', MISS),
    ('{"score": null}', MISS),
    ('{"score": true}', MISS),
    ('{"score": ""}', MISS),
    ('{"score": "high"}', MISS),
    ('{"score": "between 3 apples and 7 pears"}', MISS),
    ('{"score": "3/0"}', MISS),
    ('{"score": [1, 2]}', MISS),
    ('{"score": {}}', MISS),
    # no JSON at all
    ("score: 42\ndescription: fine", 42),
    ("**Score:** 42", 42),
    ("<score>42</score>", 42),
    ("42", 42),
    ("The relevance is 42.", 42),
    ("I'm sorry, I can't help with that.", MISS),
    ("", MISS),
    ("   \n", MISS),
    ("[]", MISS),
    ("{}", MISS),
    ("null", MISS),
    ("{" * 5000, MISS),
    ('{"a":' * 3000, MISS),
    ('[{"score":' * 3000, MISS),
    ('"' * 100_000, MISS),
    ("<think>" * 50_000, MISS),
    ("<score>" * 50_000, MISS),
    ("\\" * 10_000, MISS),
]


@pytest.mark.parametrize(("text", "score"), SCORES, ids=lambda one: repr(one)[:50])
def test_a_score_is_read_or_missed_by_name(text: str, score: Any) -> None:
    if score is MISS:
        with pytest.raises(BadModelReply, match="`RankingPrompt`: ") as caught:
            RANKING.parse(text)
        assert len(caught.value.message) < 250
    else:
        reply = RANKING.parse(text)
        assert reply["score"] == score
        assert type(reply["score"]) is int
        assert isinstance(reply["description"], str)


def test_a_miss_names_the_key_what_was_asked_and_what_came() -> None:
    with pytest.raises(BadModelReply) as caught:
        RANKING.parse('{"score": "' + "very high " * 100 + '"}')
    assert caught.value.field == "score"
    assert caught.value.message.startswith(
        "`RankingPrompt`: `score` should be a number between 0 and 100, came `very high very"
    )
    assert caught.value.message.endswith("…`")


YES = """
true | True | TRUE | yes | Yes. | y | 1 | sì | Sì | sí | oui | ja | да | sim | evet | نعم | हाँ
| 是 | 是的。 | 예 | 네 | はい | Yes, they ask to remember it. | true (explicit) | The answer is yes
"""
NO = """
false | False | no | No! | n | 0 | non | nein | 否 | 不是 | 아니요 | いいえ | нет | não | hayır | لا | नहीं
| No, it is a search. | false. | The answer is no
"""
WORDS = [(one.strip(), words is YES) for words in (YES, NO) for one in words.split("|")]
NEITHER = [
    "",
    "maybe",
    "True or False",
    "yes and no",
    "this is not true",
    "unknown",
    "2",
    "null",
    "Si tratta di una ricerca",
    "on the other hand",
]


@pytest.mark.parametrize(("words", "value"), WORDS)
def test_booleans_in_many_words_and_languages(words: str, value: bool) -> None:
    reply = MEMORY.parse(json.dumps({"is_memory_request": words}))
    assert reply["is_memory_request"] is value


@pytest.mark.parametrize(
    ("raw", "value"), [(True, True), (False, False), (1, True), (0, False), (1.0, True), ([True], True)]
)
def test_booleans_in_json(raw: Any, value: bool) -> None:
    assert MEMORY.coerce({"is_memory_request": raw})["is_memory_request"] is value


@pytest.mark.parametrize("words", NEITHER)
def test_what_is_neither_yes_nor_no_is_a_miss(words: str) -> None:
    with pytest.raises(BadModelReply, match="`is_memory_request` should be True or False"):
        MEMORY.parse(json.dumps({"is_memory_request": words}))


@pytest.mark.parametrize("raw", [None, 2, {}, [], [True, False], {"a": {}}, 0.5])
def test_what_is_no_boolean_in_json_is_a_miss(raw: Any) -> None:
    with pytest.raises(BadModelReply, match="`is_memory_request` should be True or False"):
        MEMORY.coerce({"is_memory_request": raw})


def test_keys_that_may_be_absent_are_empty_and_others_are_left_out() -> None:
    reply = MEMORY.parse(
        '{"is_memory_request": false, "mood": "fine", "memory_request": null, "sensitive": "well"}'
    )
    assert reply == {"is_memory_request": False, "action": "", "memory_request": "", "sensitive": None}


@pytest.mark.parametrize(
    ("came", "choice"),
    [
        ("remember", "remember"),
        ("REMEMBER", "remember"),
        ("to forget", "forget"),
        ("remember | forget", ""),
        (None, ""),
    ],
)
def test_a_choice_is_one_of_its_words_or_empty(came: Any, choice: str) -> None:
    assert MEMORY.coerce({"is_memory_request": True, "action": came})["action"] == choice


@pytest.mark.parametrize(
    ("came", "urls"),
    [
        (["https://a.example/1"], ["https://a.example/1"]),
        ("https://a.example/1, https://a.example/2", ["https://a.example/1", "https://a.example/2"]),
        ("https://a.example/1\nhttps://a.example/2.", ["https://a.example/1", "https://a.example/2"]),
        ('["https://a.example/1"]', ["https://a.example/1"]),
        ("- one\n- two", ["one", "two"]),
        ("1. one\n2. two", ["one", "two"]),
        ("one; two", ["one", "two"]),
        ("one, two", ["one, two"]),
        ("none", []),
        (None, []),
        ([None, 3, "x"], ["", "3", "x"]),
    ],
)
def test_lists_in_other_clothes(came: Any, urls: list[str]) -> None:
    assert ANSWER.coerce({"answer": "A [1].", "urls": came})["urls"] == urls


@pytest.mark.parametrize(
    ("came", "text"),
    [("  A ", "A"), (5, "5"), (2.5, "2.5"), (True, "True"), (["a", "b"], "a; b"), ({"a": 1}, '{"a":1}')],
)
def test_texts_in_other_clothes(came: Any, text: str) -> None:
    assert ANSWER.coerce({"answer": came})["answer"] == text


@pytest.mark.parametrize("came", [None, "", "   ", math.nan])
def test_a_text_that_must_be_there_and_is_empty_is_a_miss(came: Any) -> None:
    with pytest.raises(BadModelReply, match="`answer` is empty"):
        ANSWER.coerce({"answer": came})


@pytest.mark.parametrize(
    ("text", "names", "taken"),
    [
        ("The loft is the larger one.", ["Loft in Turin", "Two rooms"], True),
        ("lorem ipsum dolor sit amet", ["Loft in Turin", "Two rooms"], False),
        ("I'm sorry, I cannot help with that.", ["Loft in Turin", "Two rooms"], False),
        ("烤鸭更贵。", ["北京烤鸭", "小笼包"], True),
        ("对不起。", ["北京烤鸭", "小笼包"], False),
        ("The XR is cheaper.", ["XR"], True),
        ("Anything goes.", [], True),
        ("Anything goes.", ["", "!"], True),
    ],
)
def test_a_bare_text_has_to_name_what_it_is_about(text: str, names: list[str], taken: bool) -> None:
    comparison = ReplySchema.of("CompareItemsPrompt", {"comparison": "the comparison"})
    if taken:
        assert comparison.parse(text, about=names) == {"comparison": text}
    else:
        with pytest.raises(BadModelReply):
            comparison.parse(text, about=names)
    # In the form that was asked for it is what the model means to say.
    assert comparison.parse(json.dumps({"comparison": text}), about=names) == {"comparison": text}


def test_a_bare_text_is_the_answer_where_only_a_text_is_asked_for() -> None:
    assert ANSWER.parse("Five days [1].") == {"answer": "Five days [1].", "urls": []}
    rewrite = ReplySchema.of("DecontextualizeContextPrompt", {"decontextualized_query": "string"})
    with pytest.raises(BadModelReply):
        rewrite.parse("Sure, I can help you with that!")


def test_elements_of_lists_are_coerced_and_broken_ones_left_out() -> None:
    reply = FACTS.parse(
        '{"facts": [{"text": "Has a dog", "kind": "FACT"}, 7, {"kind": "x"}, "no", {"Text": "B"}]}'
    )
    assert reply["facts"] == [
        {"text": "Has a dog", "kind": "fact"},
        {"text": "", "kind": ""},
        {"text": "B", "kind": ""},
    ]


def test_an_empty_list_is_a_reply_and_a_missing_one_a_miss() -> None:
    assert FACTS.parse('{"facts": []}') == {"facts": []}
    with pytest.raises(BadModelReply, match="none of facts"):
        FACTS.parse('{"notes": []}')


@pytest.mark.parametrize("obj", [None, 3, "x", [], [{"score": 1}]])
def test_an_element_of_a_batch_that_is_no_object_is_a_miss(obj: Any) -> None:
    with pytest.raises(BadModelReply, match="an object was asked for"):
        RANKING.coerce(obj)


def test_nan_never_comes_through_whatever_the_kind() -> None:
    schema = ReplySchema.of("Own", {"a": "string", "b": ["string"], "c": {}, "d": "number", "e": "integer"})
    reply = schema.parse('{"a": NaN, "b": [NaN], "c": {"x": NaN, "y": [Infinity]}, "d": 1, "e": 1}')
    assert json.dumps(reply, allow_nan=False)
    assert reply["c"] == {"x": None, "y": [None]}


@pytest.mark.parametrize(
    ("says", "schema"),
    [
        ("True or False", {"type": "boolean"}),
        ("true/false", {"type": "boolean"}),
        ("boolean", {"type": "boolean"}),
        (True, {"type": "boolean"}),
        ("integer between 0 and 100", {"type": "integer", "minimum": 0, "maximum": 100}),
        ("an integer from 1 to 5", {"type": "integer", "minimum": 1, "maximum": 5}),
        ("number between 0 and 1", {"type": "number", "minimum": 0.0, "maximum": 1.0}),
        ("integer", {"type": "integer"}),
        (0, {"type": "integer"}),
        ("a | b-c | d", {"type": "string", "enum": ["a", "b-c", "d"]}),
        ("string", {"type": "string"}),
        ("", {"type": "string"}),
        ("Number of queries generated (1-5)", {"type": "number"}),
        ("short description of 10 to 20 words", {"type": "string"}),
        ("Easy/Medium/Hard", {"type": "string"}),
        ("Truly good or falsely praised", {"type": "string"}),
        (["q"], {"type": "array", "items": {"type": "string"}}),
        ([], {"type": "array", "items": {"type": "string"}}),
        ({}, {"type": "object"}),
        (None, {"type": "string"}),
    ],
)
def test_the_schema_of_what_an_author_writes(says: Any, schema: dict[str, Any]) -> None:
    def bare(made: Any) -> Any:
        if isinstance(made, dict):
            return {key: bare(one) for key, one in made.items() if key != "description"}
        return made

    assert bare(shape_of(says).json_schema) == schema


def test_objects_are_closed_and_all_of_their_keys_required() -> None:
    schema = FACTS.json_schema
    assert schema["required"] == ["facts"]
    assert schema["additionalProperties"] is False
    inner = schema["properties"]["facts"]["items"]
    assert inner["required"] == ["text", "kind"]
    assert inner["additionalProperties"] is False


def test_a_batch_asks_for_the_tag_beside_the_keys() -> None:
    schema = RANKING.batch_schema("id")
    assert list(schema["properties"]) == ["items"]
    assert schema["properties"]["items"]["items"]["required"] == ["id", "score", "description"]


def test_what_the_step_needs_goes_before_what_the_author_wrote() -> None:
    odd = ReplySchema.of(
        "DetectMemoryRequestPrompt", {"is_memory_request": "say yes, or no", "memory_request": []}
    )
    assert odd.parse('{"is_memory_request": "yes", "memory_request": ["a", "b"]}') == {
        "is_memory_request": True,
        "memory_request": "a; b",
    }
    one_to_five = ReplySchema.of("RankingPrompt", {"score": "integer between 1 and 5", "description": "x"})
    assert one_to_five.json_schema["properties"]["score"]["maximum"] == 5
    assert ReplySchema.of("RankingPrompt", {"score": "relevance"}).parse('{"score": "85/100"}') == {
        "score": 85
    }


@given(st.text(max_size=300), st.sampled_from([RANKING, MEMORY, ANSWER, FACTS]))
def test_any_text_is_a_reply_or_a_miss(text: str, schema: ReplySchema) -> None:
    try:
        reply = schema.parse(text)
    except BadModelReply:
        return
    assert set(reply) == set(schema.keys)


FRAGMENTS = st.sampled_from(
    [
        *"{}[]\"':,\\-.\n \x00😀",
        '"score"',
        "score",
        "12",
        "e9",
        "null",
        "true",
        "NaN",
        "<think>",
        "</think>",
        "```",
        "//",
        "/*",
    ]
)


@given(st.lists(FRAGMENTS, max_size=40).map("".join))
def test_any_heap_of_json_is_a_reply_or_a_miss(text: str) -> None:
    try:
        score = RANKING.parse(text)["score"]
    except BadModelReply:
        return
    assert 0 <= score <= 100


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from(sorted(REFS)),
)
def test_any_value_for_any_needed_key_is_coerced_or_a_miss(value: Any, ref: str) -> None:
    schema = ReplySchema.of(ref, dict.fromkeys(REFS[ref].keys, "string") or {"x": ["string"]})
    try:
        reply = schema.coerce(dict.fromkeys(schema.keys, value))
    except BadModelReply:
        return
    assert json.dumps(reply, allow_nan=False)


def test_what_an_example_expects_is_compared_part_by_part() -> None:
    reply = {"score": 80, "yes": True, "text": "A Vegan dish", "list": [{"a": "x", "b": 1}], "urls": ["u1"]}
    fits = {"score": ">= 70", "yes": True, "text": "~vegan", "list": [{"a": "X "}], "urls": ["u1"]}
    assert misses(fits, reply) == []
    assert misses({"score": "< 80", "yes": 1, "text": "!~vegan", "list": [], "none": "x"}, reply) == [
        "score: expected '< 80', came 80",
        "yes: expected 1, came True",
        "text: expected '!~vegan', came 'A Vegan dish'",
        "list: expected [], came [{'a': 'x', 'b': 1}]",
        "none: expected 'x', came None",
    ]
