"""What holds for every dialect, and what each makes of every message; all against the schemas."""

from __future__ import annotations

import json
from typing import Any, get_args

import orjson
import pytest

from core import messages as m
from core.errors import BadQuery
from core.query import Query
from server.wire import DIALECTS, PROMISING, Asking, Frame, Promised, Sent
from tests.events import check


def item(name: str = "soup", score: float | None = 80.0, **more: Any) -> m.Item:
    fields: dict[str, Any] = {
        "url": f"https://kitchen.example/{name}",
        "name": name.title(),
        "site": "kitchen",
        "score": score,
        "description": f"About {name}.",
        "schema_object": {"@type": "Recipe", "name": name, "score": "of the page", "recipeYield": "4"},
        "ranking_type": "FAST_TRACK",
        "document_id": name,
        **more,
    }
    return m.Item(**fields)


SIDE = m.Compared("Soup", "https://kitchen.example/soup", {"@type": "Recipe"}, "kitchen", "soup")
STARTED = m.Started("0.55", "stub")
ASKED = m.AskUser("In which city?", (m.Question("city", "Which city?", "choice", ("Roma", "Bari")),))
FAILED = m.Failure("model_timeout", "no answer within 8 s", retryable=True)
COMPLETE = m.Complete(("soup", "stew"), False, {"total": 5.0}, {"model_calls": 1})

# One of each, so that a message type that no dialect was tried with fails `test_every_message_type_is_tried`.
EVERY: list[m.Message] = [
    STARTED,
    m.Header("license", "CC BY 4.0"),
    m.AskingSites("Asking kitchen", ("kitchen",)),
    m.Decontextualized("vegan soup", "a vegan one"),
    m.Remember("I am vegan", "I will remember that", None, "user", "token"),
    m.UsedMemories(({"memory_id": "1", "text": "is vegan"},)),
    m.ToolSelection("search", 95, {"query": "soup"}),
    m.Irrelevant("This is a kitchen."),
    m.Results((item("soup", None, ranking_type="PROVISIONAL"), item("stew", None))),
    m.Results((item("stew", 60.0),)),
    m.Results((item("soup", 90.0, citations=(m.Citation(0, "hot", page=2),)), item("tart", 55.0))),
    ASKED,
    m.ItemDetails("Soup", {"time": "2 h"}, 90, "It says so.", SIDE.url, "kitchen", SIDE.schema_object),
    m.CompareItems("Both are hot.", SIDE, SIDE),
    m.EnsembleResult({"recommendations": {"theme": "dinner"}}),
    m.Summary("Two soups."),
    m.AnswerDelta("Soup is "),
    m.GeneratedAnswer("Soup is hot [1].", ({"n": 1, "url": SIDE.url, "name": "Soup"},), found="part"),
    m.NoResults("Nothing.", "site_empty"),
    m.Debug(steps={"retrieval": 3.5}, model_calls=({"step": "RankingPrompt", "prompt": "a.xml:3"},)),
    FAILED,
    COMPLETE,
]
ANSWER: list[m.Message] = [
    one for one in EVERY if not isinstance(one, m.AskUser | m.NoResults | m.Irrelevant | m.Failure)
]


def asking() -> Asking:
    return Asking(Query("soup?", "q-1", "c-1", sites=("kitchen",), prev=("hello",)))


def streamed(dialect: str, messages: list[Any]) -> list[Frame]:
    """All events, as they come out of their JSON."""
    spoken = DIALECTS[dialect](asking())
    frames = [frame for message in messages for frame in spoken.frames(message)]
    return [Frame(name, json.loads(orjson.dumps(body))) for name, body in frames]


def whole(dialect: str, messages: list[Any], response_format: Any = "conv_search") -> Any:
    spoken = DIALECTS[dialect](Asking(asking().query, response_format))
    return json.loads(orjson.dumps(spoken.whole(messages)))


def check_frame(dialect: str, frame: Frame) -> None:
    if dialect == "structured-0.55":
        check(dialect, {"event": frame.name, "data": frame.body})
    else:
        assert frame.name is None
        check(dialect, frame.body)


def test_every_message_type_is_tried() -> None:
    # A message that another part has just added is tried where it is made; here are those of asking.
    missing = {kind.__name__ for kind in get_args(m.Message)} - {type(one).__name__ for one in EVERY}
    assert missing <= {"Forgotten", "Memories"}


# ---------------------------------------------------------------- every dialect


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_message_travels_as_the_schema_says(dialect: str) -> None:
    frames = streamed(dialect, EVERY)
    assert frames
    for frame in frames:
        check_frame(dialect, frame)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "messages",
    [
        ANSWER,
        [STARTED, m.Results((item(),)), FAILED, m.Complete(("soup",), True)],
        [STARTED, FAILED, m.NoResults("Nothing.", "retrieval_failed"), m.Complete((), True)],
        [STARTED, m.NoResults("Nothing.", "below_min_score"), m.Complete(())],
        [STARTED, ASKED, m.Complete(())],
    ],
    ids=["answer", "degraded", "failed", "nothing", "asked back"],
)
def test_every_kind_of_answer_is_as_the_schema_says(dialect: str, messages: list[m.Message]) -> None:
    for frame in streamed(dialect, messages):
        check_frame(dialect, frame)
    check(dialect, whole(dialect, messages), "whole")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_whole_answer_holds_the_final_items_only_best_first(dialect: str) -> None:
    answer = whole(dialect, ANSWER)
    if dialect == "legacy-2026":
        (results,) = [one["content"] for one in answer if "content" in one and type(one["content"]) is list]
    else:
        results = answer["results"]
    items = [one for one in results if "url" in one and "ranking_type" in one]
    assert [(one["name"], one["score"]) for one in items] == [("Soup", 90.0), ("Stew", 60.0)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pieces_of_an_answer_are_not_in_the_whole(dialect: str) -> None:
    text = json.dumps(whole(dialect, ANSWER))
    assert "Soup is hot [1]." in text
    assert '"Soup is "' not in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_remembered_reaches_the_client_that_does_not_stream(dialect: str) -> None:
    assert '"confirm": "token"' in json.dumps(whole(dialect, ANSWER))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_refusal_names_code_and_field(dialect: str) -> None:
    body = DIALECTS[dialect].refusal(BadQuery("`x` is wrong", field="x"))
    assert body["error"] == {"code": "bad_request", "message": "`x` is wrong", "field": "x"}
    check(dialect, body, "Failure" if dialect in PROMISING else "refusal")


# ---------------------------------------------------------------- legacy


def test_legacy_complete_is_last_and_every_frame_has_type_and_query_id() -> None:
    frames = streamed("legacy", EVERY)
    assert len(frames) == len(EVERY)
    assert frames[-1].body["message_type"] == "complete"
    assert {frame.body["query_id"] for frame in frames} == {"q-1"}


def test_legacy_whole_has_the_first_error_which_is_the_cause() -> None:
    later = m.Failure("model_reply", "no scores", retryable=True)
    answer = whole("legacy", [STARTED, FAILED, later, m.Complete((), True)])
    assert answer["error"]["code"] == FAILED.code
    twice = [m.Header("license", "old"), m.Header("license", "new")]
    assert whole("legacy", [STARTED, *twice, m.Complete(())])["license"]["content"] == "new"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_result_cites_the_passage_it_was_found_by_in_the_shape_of_search(dialect: str) -> None:
    found = item("soup", 90.0, citations=(m.Citation(3, "hot"),))
    body = whole(dialect, [STARTED, m.Results((found,)), m.Complete(("soup",))])
    if dialect == "legacy-2026":
        ((shown,),) = [one["content"] for one in body if one["message_type"] == "result"]
    else:
        (shown,) = body["results"]
    cited = [{"chunk": 3, "text": "hot", "page": None, "section": None}]
    assert shown["citations"] == cited
    assert dialect != "structured-0.54" or shown["grounding"]["citations"] == cited


def test_legacy_keeps_stored_json_as_it_is() -> None:
    stored = {"a": None, "memory_id": None, "b": [{"c": None}]}
    (frame,) = streamed("legacy", [m.Results((item(schema_object=stored),))])
    assert frame.body["results"][0]["schema_object"] == stored


# ---------------------------------------------------------------- legacy-2026


def test_2026_begins_and_ends_with_its_envelopes() -> None:
    frames = [frame.body for frame in streamed("legacy-2026", EVERY)]
    assert frames[0]["message_type"] == "begin-nlweb-response"
    assert (frames[0]["query"], frames[0]["conversation_id"]) == ("soup?", "c-1")
    assert frames[-1]["message_type"] == "end-nlweb-response"
    assert frames[-1]["error"] is True
    assert "error" not in streamed("legacy-2026", ANSWER)[-1].body


def test_2026_messages_are_numbered_and_carry_their_matter_in_content() -> None:
    frames = [frame.body for frame in streamed("legacy-2026", EVERY)][1:-1]
    prefixes, numbers = zip(*(frame["message_id"].split("#") for frame in frames), strict=True)
    assert len(set(prefixes)) == 1
    assert list(numbers) == [str(n) for n in range(1, len(frames) + 1)]
    assert {frame["sender_type"] for frame in frames} == {"assistant"}
    assert all("content" in frame for frame in frames)
    results = [frame for frame in frames if frame["message_type"] == "result"]
    assert results[0]["content"][0]["@type"] == "Item"
    assert (results[-1]["@type"], results[-1]["content"]) == ("Summary", "Two soups.")
    (generated,) = [frame["content"] for frame in frames if frame["message_type"] == "nlws"]
    assert (generated["@type"], generated["answer"]) == ("GeneratedAnswer", "Soup is hot [1].")


def test_2026_whole_is_a_list_with_the_persons_question_first() -> None:
    listed = whole("legacy-2026", ANSWER)
    assert listed[0]["sender_type"] == "user"
    assert listed[0]["content"] == {"query": "soup?", "site": "kitchen", "mode": "list", "prev": ["hello"]}
    assert [one["message_type"] for one in listed].count("result") == 2  # the items, and the summary


# ---------------------------------------------------------------- structured 0.55


def test_structured_starts_with_meta_and_completes() -> None:
    frames = streamed("structured-0.55", ANSWER)
    assert frames[0].name == "start"
    assert frames[0].body["_meta"] == {
        "version": "0.55",
        "response_type": "answer",
        "response_format": "conv_search",
        "mode": "list",
        "site": "kitchen",
        "query_id": "q-1",
        "request_id": "q-1",
        "conversation_id": "c-1",
        "session_context": {"conversation_id": "c-1"},
        "llm": "stub",
    }
    assert frames[-1].name == "complete"
    end = frames[-1].body["_meta"]
    assert end["decontextualized_query"] == "vegan soup"
    assert end["order"] == ["soup", "stew"]
    assert "error" not in frames[-1].body


def test_structured_item_that_comes_again_keeps_its_index() -> None:
    results = [frame.body for frame in streamed("structured-0.55", ANSWER) if frame.name == "result"]
    assert [(one["index"], one["item"]["name"]) for one in results] == [
        (0, "Soup"),
        (1, "Stew"),
        (1, "Stew"),
        (0, "Soup"),
        (2, "Tart"),
    ]


def test_structured_names_every_other_message_as_the_legacy_dialect() -> None:
    legacy = [frame.body for frame in streamed("legacy", EVERY)]
    named = {frame.name: frame.body for frame in streamed("structured-0.55", EVERY)}
    for body in legacy:
        if body["message_type"] not in ("api_version", "result_batch", "complete"):
            assert named[body["message_type"]] == body


def test_structured_stream_that_failed_says_so_at_its_end() -> None:
    frames = streamed("structured-0.55", [STARTED, FAILED, m.Complete((), True)])
    assert [frame.name for frame in frames] == ["start", "error", "complete"]
    assert frames[-1].body["error"] is True
    assert frames[-1].body["_meta"]["response_type"] == "failure"


# ---------------------------------------------------------------- structured 0.54


def keys(frames: list[Frame]) -> list[str]:
    return [next(iter(frame.body)) for frame in frames]


def test_054_says_what_the_answer_is_before_its_results_and_how_it_went_after() -> None:
    frames = streamed("structured-0.54", ANSWER)
    assert keys(frames)[:2] == ["_meta", "results"]
    assert keys(frames)[-1] == "_meta"
    assert frames[0].body["_meta"]["response_type"] == "Answer"
    assert frames[0].body["_meta"]["decontextualized_query"] == "vegan soup"
    assert frames[-1].body["_meta"]["order"] == ["soup", "stew"]
    told = [one["message_type"] for one in frames[-1].body["_meta"]["messages"]]
    assert told == ["license", "asking_sites", "remember", "used_memories", "tool_selection", "debug"]


def test_054_items_have_their_schema_fields_beside_ours_and_ours_hold() -> None:
    first, second = [f.body["results"] for f in streamed("structured-0.54", ANSWER) if "results" in f.body][
        :2
    ]
    assert (first[0]["@type"], first[0]["recipeYield"], first[0]["name"]) == ("Recipe", "4", "Soup")
    assert "score" not in first[0]
    assert second[0]["score"] == 60.0
    assert first[0]["grounding"] == {"source_urls": ["https://kitchen.example/soup"], "citations": []}


def test_054_failure_is_two_frames_and_an_error_with_results_is_none() -> None:
    failed = streamed("structured-0.54", [STARTED, FAILED, m.Complete((), True)])
    assert keys(failed) == ["_meta", "error", "_meta"]
    assert failed[0].body["_meta"]["response_type"] == "Failure"
    degraded = streamed(
        "structured-0.54", [STARTED, FAILED, m.Results((item(),)), m.Complete(("soup",), True)]
    )
    assert keys(degraded) == ["_meta", "results", "_meta"]
    assert degraded[0].body["_meta"]["response_type"] == "Answer"
    assert degraded[-1].body["_meta"]["degraded"] is True
    assert degraded[-1].body["_meta"]["messages"][0]["code"] == "model_timeout"


@pytest.mark.parametrize("stored", [None, "text", [], [1, {"@type": "Movie"}], {"@type": ["A", "B"]}])
def test_054_takes_whatever_was_stored(stored: Any) -> None:
    for frame in streamed("structured-0.54", [STARTED, m.Results((item(schema_object=stored),)), COMPLETE]):
        check_frame("structured-0.54", frame)


# ---------------------------------------------------------------- envelopes


@pytest.mark.parametrize("dialect", sorted(PROMISING))
def test_four_envelopes(dialect: str) -> None:
    promise: list[Sent] = [Promised("t", 10)]
    failed = [STARTED, FAILED, m.NoResults("No.", "retrieval_failed"), m.Complete((), True)]
    for messages, kind, key in (
        (ANSWER, "Answer", "results"),
        ([STARTED, ASKED, m.Complete(())], "Elicitation", "elicitation"),
        (promise, "Promise", "promise"),
        (failed, "Failure", "error"),
    ):
        body = whole(dialect, list(messages))
        assert body["_meta"]["response_type"] == kind
        assert set(body) == {"_meta", key}
        check(dialect, body, kind)
    asked = whole(dialect, [STARTED, ASKED, m.Complete(())])["elicitation"]
    assert asked == {
        "text": "In which city?",
        "questions": [{"id": "city", "text": "Which city?", "type": "choice", "options": ["Roma", "Bari"]}],
    }
    assert whole(dialect, promise)["promise"] == {"token": "t", "estimated_time": 10}


def test_question_back_without_parts_is_one_free_question() -> None:
    body = whole("structured-0.55", [STARTED, m.AskUser("In which city?"), m.Complete(())])
    (question,) = body["elicitation"]["questions"]
    assert (question["text"], question["type"]) == ("In which city?", "text")


def test_nothing_found_is_an_answer_not_a_failure() -> None:
    body = whole("structured-0.55", [STARTED, m.NoResults("No.", "below_min_score"), m.Complete(())])
    assert body["_meta"]["response_type"] == "Answer"
    assert body["results"] == []
    assert body["_meta"]["messages"][0]["reason"] == "below_min_score"


def test_memory_outage_with_nothing_found_is_no_failure() -> None:
    said = [STARTED, FAILED, m.NoResults("No.", "below_min_score"), m.Complete((), False)]
    assert whole("structured-0.55", said)["_meta"]["response_type"] == "Answer"


def test_what_is_shown_beside_the_items_follows_them_in_results() -> None:
    results = whole("structured-0.55", ANSWER)["results"]
    assert [one["@type"] for one in results] == [
        "Item",
        "Item",
        "ItemDetails",
        "CompareItems",
        "EnsembleResult",
        "Summary",
        "GeneratedAnswer",
    ]


def test_chatgpt_app_has_a_text_to_read_and_the_results_as_data() -> None:
    body = whole("structured-0.55", ANSWER, "chatgpt_app")
    assert body["content"] == [{"type": "text", "text": "I will remember that\nSoup is hot [1]."}]
    assert len(body["structuredData"]) == 7
    assert "results" not in body
    found = [STARTED, m.Results((item("soup"), item("stew", 70.0))), COMPLETE]
    (text,) = whole("structured-0.55", found, "chatgpt_app")["content"]
    assert text["text"].splitlines()[1] == "2. Stew: About stew. (https://kitchen.example/stew)"


MENU = {"theme": "A dinner", "items": [{"category": "main", "name": "Soup"}], "overall_tips": []}
MEMORIES = m.Memories(({"memory_id": "1", "text": "I am vegan"},), "This is what I know:")
FORGOTTEN = m.Forgotten(({"memory_id": "1", "text": "I am vegan"},), "I have forgotten that.")
SOUP = m.Results((item("soup"),))
ONE = m.Complete(("soup",))
NONE = m.Complete(())
BY_POINTS = m.ItemDetails(
    "Soup", {"time": "2 h"}, 90, "", SIDE.url, "kitchen", SIDE.schema_object, document_id="soup"
)


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([m.NoResults("Nothing here.", "site_empty"), NONE], "Nothing here."),
        ([BY_POINTS, SOUP, ONE], f"Soup: time: 2 h ({SIDE.url})"),
        ([m.CompareItems("Both are hot.", SIDE, SIDE), SOUP, ONE], f"Both are hot.\n1. Soup ({SIDE.url})"),
        (
            [m.EnsembleResult({"recommendations": MENU}), SOUP, ONE],
            f"A dinner.\nmain: Soup.\n1. Soup ({SIDE.url})",
        ),
        ([m.Irrelevant("This is a kitchen."), NONE], "This is a kitchen."),
        ([MEMORIES, NONE], "This is what I know:\nI am vegan"),
        ([FORGOTTEN, NONE], "I have forgotten that.\nI am vegan"),
        ([m.Remember("I am vegan", "I will remember that", "1", "user"), NONE], "I will remember that"),
        (
            [m.Remember("I am vegan", "I will remember that", "1", "user"), SOUP, ONE],
            f"I will remember that\n1. Soup: About soup. ({SIDE.url})",
        ),
        ([m.Failure("memory_failed", "The memory is away.", retryable=True), NONE], "The memory is away."),
        ([m.AskingSites("There are no sites yet", ()), NONE], "There are no sites yet"),
        ([NONE], "There is no answer to this."),
    ],
)
def test_chatgpt_app_says_in_words_whatever_the_answer_is(messages: list[m.Message], text: str) -> None:
    body = whole("structured-0.55", [STARTED, *messages], "chatgpt_app")
    assert body["_meta"]["response_type"] == "Answer"
    assert body["content"] == [{"type": "text", "text": text}]
