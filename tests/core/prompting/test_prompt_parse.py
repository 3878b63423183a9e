"""One file: what is read from it, and for everything that can be wrong a `file:line:col: what`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.prompting import ParsedFile, Prompt, PromptLibrary, parse_bytes, parse_file
from core.prompting.parse import MAX_FILE_BYTES

SHIPPED = (Path(__file__).resolve().parents[3] / "prompts" / "trattoria.xml").read_bytes()

Parse = Callable[[str], ParsedFile]

OK = '<promptString>Say {request.query}.</promptString><returnStruc>{"summary": "string"}</returnStruc>'
REF = 'ref="SummarizeResultsPrompt"'


def in_thing(inside: str) -> str:
    return f"<root>\n<Thing>\n{inside}\n</Thing>\n</root>"


def prompt_with(
    struc: str = '{"summary": "string"}', text: str = "t", attributes: str = REF, more: str = ""
) -> str:
    return in_thing(
        f"<Prompt {attributes}>\n<promptString>{text}</promptString>\n"
        f"<returnStruc>{struc}</returnStruc>\n{more}</Prompt>"
    )


# (what is broken, the file, line, column, a part of what is said)
BROKEN: list[tuple[str, str, int, int, str]] = [
    ("empty", "", 1, 1, "the file is empty"),
    ("blank", " \n ", 2, 2, "no XML"),
    ("no xml", "ask me", 1, 1, "no XML"),
    ("json", '{"a": 1}', 1, 1, "no XML"),
    ("unclosed", "<root>\n<Thing>", 2, 8, "ends before everything is closed"),
    ("crossed tags", "<root>\n<Thing></root></Thing>", 2, 15, "tag mismatch"),
    ("ampersand", in_thing("<Prompt>fish & chips</Prompt>"), 3, 15, "write `&amp;`"),
    ("half an entity", in_thing("<Prompt>a &b c</Prompt>"), 3, 13, "write `&amp;`"),
    ("html entity", in_thing("<Prompt>a&nbsp;b</Prompt>"), 3, 16, "only &amp;"),
    ("less than", in_thing("<Prompt>a < b</Prompt>"), 3, 12, "write `&lt;`"),
    ("less than in an attribute", '<root a="<"/>', 1, 10, "write `&lt;`"),
    ("no quotes", "<root>\n<Site ref=a/></root>", 2, 11, "in quotes"),
    ("attribute twice", '<root>\n<Site ref="a" ref="b"/></root>', 2, 22, "stands once"),
    ("attribute in a tag that never ends", '<root>\n<Site ref="a"', 2, 14, ""),
    ("two roots", "<root></root>\n<root></root>", 2, 1, "inside one `<root>`"),
    ("text after the root", "<root></root>\nend", 2, 1, "inside one `<root>`"),
    ("control character", "<root>\n\x07</root>", 2, 1, "control character"),
    ("dashes in a comment", "<root>\n<!-- a -- b --></root>", 2, 8, "`--` may not"),
    ("open comment", "<root>\n<!-- a </root>", 2, 15, ""),
    ("open cdata", "<root>\n<![CDATA[x</root>", 2, 18, "`]]>`"),
    ("end of cdata", in_thing("<Prompt>]]></Prompt>"), 3, 9, "not allowed"),
    ("unknown prefix", "<root>\n<so:Recipe/></root>", 2, 11, "declare it"),
    ("prefix of an attribute", '<root>\n<Site x:ref="a"/></root>', 2, 16, "declare it"),
    ("number of no character", "<root>\n&#0;</root>", 2, 5, ""),
    ("two declarations", '<?xml version="1.0"?>\n<?xml version="1.0"?><root/>', 2, 6, "only at the start"),
    ("name of an element", "<root>\n<1a/></root>", 2, 2, "write `&lt;`"),
    ("too deep", "<root>\n" + "<a>" * 400, 2, 768, "too deep"),
    ("columns count letters", "<root><!-- è 绿 🌍 -->&</root>", 1, 22, "write `&amp;`"),
    ("doctype", "<?xml version='1.0'?>\n<!-- a -->\n<!DOCTYPE root>\n<root/>", 3, 1, "not allowed"),
    ("dtd of one's own", "<!DOCTYPE root [<!ELEMENT root ANY>]>\n<root/>", 1, 1, "not allowed"),
    ("dtd from outside", '<!DOCTYPE root SYSTEM "http://127.0.0.1:9/x.dtd"><root/>', 1, 1, "not allowed"),
    ("root", "<roots/>", 1, 1, "not `root` (did you mean `root`?)"),
    ("site without a name", "<root>\n <Site></Site></root>", 2, 2, "needs a name"),
    ("site with a wrong name", '<root>\n<Site ref="My Site"/></root>', 2, 1, "is no site name"),
    (
        "site attribute",
        '<root>\n<Site ref="a" type="Recipe"/></root>',
        2,
        1,
        "`type` of `<Site>` (did you mean `types`?)",
    ),
    ("site in a site", '<root><Site ref="a">\n<Site ref="b"/></Site></root>', 2, 1, "has no place here"),
    ("prompt without ref", in_thing(f"<Prompt>{OK}</Prompt>"), 3, 1, "which one it is"),
    ("prompt without text", in_thing(f"<Prompt {REF}/>"), 3, 1, "has no text"),
    ("prompt of blanks", prompt_with(text="  \n <!-- soon --> "), 4, 1, "has no text"),
    (
        "prompt attribute",
        prompt_with(attributes=REF + ' teir="high"'),
        3,
        1,
        "`teir` of `<Prompt>` (did you mean `tier`?)",
    ),
    (
        "element of a prompt",
        in_thing(f"<Prompt {REF}>{OK}\n<returnStruct/></Prompt>"),
        4,
        1,
        "mean `returnStruc`?",
    ),
    ("two texts", in_thing(f"<Prompt {REF}>{OK}\n<promptString>b</promptString></Prompt>"), 4, 1, "a second"),
    (
        "text in the open",
        in_thing(f"<Prompt {REF}>Say it. {OK}</Prompt>"),
        3,
        1,
        "`Say it.` stands directly in",
    ),
    ("text in a type", in_thing("Say it."), 2, 1, "stands directly in `<Thing>`"),
    ("element in a type", in_thing("<Promt/>"), 3, 1, "only `<Prompt>`"),
    ("promptString in a type", "<root>\n<promptString>x</promptString></root>", 2, 1, "has no place here"),
    ("empty question", '<root><Site ref="a">\n<question> </question></Site></root>', 2, 1, "is empty"),
    (
        "question beyond a button",
        f'<root><Site ref="a">\n <question>{"long " * 50}</question></Site></root>',
        2,
        2,
        "has 249 characters; an example may have 200",
    ),
    ("question outside a site", "<root>\n<question>Which?</question></root>", 2, 1, "has no place here"),
    ("tier", prompt_with(attributes=REF + ' tier="best"'), 3, 1, "`high` or `low`"),
    ("enabled", prompt_with(attributes=REF + ' enabled="maybe"'), 3, 1, "`true` or `false`"),
    ("temperature", prompt_with(attributes=REF + ' temperature="3"'), 3, 1, "from 0 to 2"),
    ("temperature in words", prompt_with(attributes=REF + ' temperature="hot"'), 3, 1, "from 0 to 2"),
    ("timeout", prompt_with(attributes=REF + ' timeout="nan"'), 3, 1, "from 0.1 to 600"),
    ("max_tokens", prompt_with(attributes=REF + ' max_tokens="0"'), 3, 1, "from 1 to"),
    (
        "variable",
        prompt_with(text="a\n{request.qurey}"),
        5,
        1,
        "`{request.qurey}` (did you mean `request.query`?)",
    ),
    (
        "variable of another group",
        prompt_with(text="a {item.query}"),
        4,
        17,
        "(did you mean `request.query`?)",
    ),
    ("variable like none", prompt_with(text="{foo.bar}"), 4, 15, "unknown variable `{foo.bar}`"),
    ("variable after a comment", prompt_with(text="<!-- {x.y} -->{x.z}"), 4, 29, "unknown variable `{x.z}`"),
    ("broken returnStruc", prompt_with('{"summary" \n"x"}'), 6, 1, "cannot be used: no JSON"),
    ("returnStruc of words", prompt_with("a summary"), 5, 14, "cannot be used: no JSON"),
    ("returnStruc of NaN", prompt_with('{"summary": NaN}'), 5, 1, "`NaN` is no JSON"),
    ("returnStruc is a list", prompt_with('["summary"]'), 5, 1, "a JSON object with keys"),
    ("returnStruc without a key", prompt_with('{"sumary": "x"}'), 5, 1, "lacks `summary`"),
    (
        "expect is no JSON",
        prompt_with(more='<example query="q">\n<expect>yes</expect></example>'),
        7,
        1,
        "no JSON",
    ),
    (
        "expect is a list",
        prompt_with(more='<example query="q">\n<expect>[]</expect></example>'),
        7,
        1,
        "JSON object",
    ),
    (
        "expect of no key",
        prompt_with(more='<example query="q">\n<expect>{"sumary": 1}</expect></example>'),
        7,
        1,
        "`summary`?",
    ),
    (
        "example attribute",
        prompt_with(more='<example qery="q"/>'),
        6,
        1,
        "`qery` of `<example>` (did you mean `query`?)",
    ),
    (
        "example element",
        prompt_with(more="<example>\n<expected/></example>"),
        7,
        1,
        "only `<value>` and `<expect>`",
    ),
    (
        "example value",
        prompt_with(more='<example>\n<value name="request.anwers">x</value></example>'),
        7,
        1,
        "`request.answers`?",
    ),
]


@pytest.mark.parametrize(("name", "text", "line", "col", "what"), BROKEN, ids=[one[0] for one in BROKEN])
def test_a_broken_file_gives_one_line_that_says_where_and_what(
    parse: Parse, name: str, text: str, line: int, col: int, what: str
) -> None:
    parsed = parse(text)
    assert not parsed.usable
    (problem,) = parsed.problems
    assert str(problem).startswith(f"p.xml:{line}:{col}: ")
    assert what in problem.what
    assert "\n" not in str(problem)


WARNED: list[tuple[str, str, int, int, str]] = [
    (
        "unknown type",
        f"<root>\n<Recipee><Prompt {REF}>{OK}</Prompt></Recipee></root>",
        2,
        1,
        "(did you mean `Recipe`?)",
    ),
    (
        "unknown type of a site",
        '<root>\n<Site ref="a" types="Moovie"/></root>',
        2,
        1,
        "(did you mean `Movie`?)",
    ),
    (
        "question twice",
        '<root><Site ref="a"><question>Which?</question>\n<question>which?</question></Site></root>',
        2,
        1,
        "stands here twice",
    ),
    (
        "unknown ref",
        in_thing(f'<Prompt ref="RankPrompt">{OK}</Prompt>'),
        3,
        1,
        "(did you mean `RankingPrompt`?)",
    ),
    ("duplicate", in_thing(f"<Prompt {REF}>{OK}</Prompt>\n<Prompt {REF}>{OK}</Prompt>"), 4, 1, "duplicate"),
    ("older name", prompt_with(text="{request.answer}"), 4, 15, "older name of `{request.answers}`"),
    (
        "no value in this place",
        prompt_with(text="{item.name}"),
        4,
        15,
        "has no value in `SummarizeResultsPrompt`",
    ),
    ("a variable without its group", prompt_with(text="{query}"), 4, 15, "(did you mean `request.query`?)"),
    (
        "no returnStruc",
        in_thing(f"<Prompt {REF}><promptString>x</promptString></Prompt>"),
        3,
        1,
        "`summary` is asked for",
    ),
    ("empty returnStruc", prompt_with(""), 3, 1, "`summary` is asked for"),
    (
        "broken returnStruc nobody needs",
        prompt_with("{,}", attributes='ref="tool:x"'),
        5,
        15,
        "cannot be used",
    ),
]


@pytest.mark.parametrize(("name", "text", "line", "col", "what"), WARNED, ids=[one[0] for one in WARNED])
def test_a_doubtful_file_is_used_and_says_what_is_doubtful(
    parse: Parse, name: str, text: str, line: int, col: int, what: str
) -> None:
    parsed = parse(text)
    assert parsed.usable
    (problem,) = parsed.problems
    assert problem.severity == "warning"
    assert str(problem).startswith(f"p.xml:{line}:{col}: ")
    assert what in problem.what


def test_an_entity_bomb_is_refused_at_once(parse: Parse) -> None:
    # expanding it would take all memory and never end
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE root [<!ENTITY a0 "ha">{entities}]><root><Thing>&a11;</Thing></root>'
    (problem,) = parse(bomb).problems
    assert "not allowed" in problem.what


def test_an_external_entity_is_refused_and_its_file_never_read(tmp_path: Path, parse: Parse) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret", encoding="utf-8")
    text = (
        f'<?xml version="1.0"?><!DOCTYPE root [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
        f"<root><Thing><Prompt {REF}><promptString>&x;</promptString></Prompt></Thing></root>"
    )
    parsed = parse(text)
    assert parsed.prompts == ()
    assert "the secret" not in str(parsed)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_doctype_is_refused_in_every_encoding(encoding: str) -> None:
    raw = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE root [<!ENTITY x "y">]><root>&x;</root>'.encode(
        encoding
    )
    assert not parse_bytes(raw, "p.xml").usable


def only_prompt(parsed: ParsedFile) -> Prompt:
    (prompt,) = parsed.prompts
    return prompt


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_files_in_other_encodings_are_read_as_they_declare(encoding: str) -> None:
    declared = encoding.replace("-sig", "")
    text = f'<?xml version="1.0" encoding="{declared}"?>' + prompt_with(text="perché no, café")
    assert only_prompt(parse_bytes(text.encode(encoding), "p.xml")).text == "perché no, café"


def test_bytes_that_are_not_in_the_declared_encoding_are_placed() -> None:
    (problem,) = parse_bytes(b"<root>\n<!-- caf\xe9 --></root>", "p.xml").problems
    assert str(problem) == "p.xml:2:9: not valid utf-8: byte 0xe9; save the file as UTF-8"
    (problem,) = parse_bytes(b'<?xml version="1.0" encoding="klingon"?><root/>', "p.xml").problems
    assert "unknown encoding `klingon`" in problem.what


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.xml"
    path.write_bytes(b"<root>" + b" " * MAX_FILE_BYTES + b"</root>")
    (problem,) = parse_file(path).problems
    assert "prompt files may have 2,000,000" in problem.what


def test_all_problems_of_a_file_are_found_in_order(parse: Parse) -> None:
    text = "\n".join((prompt_with('{"x": 1}', "{a.b} {c.d}", more="<expect/>"),))
    assert [(one.line, one.col) for one in parse(text).problems] == [(4, 15), (4, 21), (5, 1), (6, 1)]


def test_text_comes_whole_through_comments_cdata_instructions_and_entities(parse: Parse) -> None:
    text = "One <!-- {no.thing} --> two <?skip?> three <![CDATA[<four> & {x}]]> &lt;five&gt; &#x41;.<!-- -->"
    assert only_prompt(parse(prompt_with(text=text))).text == "One  two  three <four> & {x} <five> A."


def test_indentation_of_the_file_is_not_sent_and_that_of_the_author_is(parse: Parse) -> None:
    text = "First {request.query}\n          a list:\n            - one\n\n          end"
    (prompt,) = parse(prompt_with(text=text)).prompts
    assert "".join(prompt.pieces[::2]) == "First \na list:\n  - one\n\nend"
    assert prompt.variables == ("request.query",)


@pytest.mark.parametrize(
    "start",
    ["<root>", '<root xmlns="http://nlweb.ai/base">', '<root xmlns="urn:other">', '<root xmlns:so="urn:x">'],
)
def test_any_namespace_or_none_will_do(parse: Parse, start: str) -> None:
    parsed = parse(f"{start}<Recipe><Prompt {REF}>{OK}</Prompt></Recipe></root>")
    assert only_prompt(parsed).item_type == "Recipe"
    prefixed = f'<root xmlns:so="urn:x"><so:Recipe><so:Prompt {REF}>{OK}</so:Prompt></so:Recipe></root>'
    assert only_prompt(parse(prefixed)).item_type == "Recipe"


def test_a_prompt_has_all_that_its_element_says(parse: Parse) -> None:
    attributes = f'{REF} tier="high" enabled="False" temperature="0.3" max_tokens="400" timeout="2.5"'
    more = '<example query="soups" prev=\'["a, b"]\' site="s"><expect>{"summary": "~x"}</expect></example>'
    text = prompt_with(
        text="{request.query} {request.answers} {request.query}", attributes=attributes, more=more
    )
    prompt = only_prompt(parse(text))
    assert (prompt.tier, prompt.enabled, prompt.temperature) == ("high", False, 0.3)
    assert (prompt.max_tokens, prompt.timeout_s) == (400, 2.5)
    assert prompt.variables == ("request.query", "request.answers")
    assert (prompt.site, prompt.item_type, prompt.file, prompt.line) == (None, "Thing", "p.xml", 3)
    (example,) = prompt.examples
    assert example.values["request.rawQuery"] == example.values["request.query"] == example.query == "soups"
    assert example.values["request.previousQueries"] == ["a, b"]
    assert example.expect == {"summary": "~x"}
    assert example.line == 6


def test_what_is_not_said_is_left_to_the_settings(parse: Parse) -> None:
    prompt = only_prompt(parse(prompt_with()))
    assert (prompt.tier, prompt.temperature, prompt.max_tokens, prompt.timeout_s) == (None, None, None, None)
    assert prompt.enabled


def test_sites_say_their_types_in_either_form(parse: Parse) -> None:
    text = (
        '<root><Site ref="a" types="Recipe, schema:Movie Recipe" extends="b">'
        "<description> Home\n cooking </description>"
        '</Site><Site id="b"><itemType>Item</itemType><itemType>Book</itemType></Site><Site name="c"/></root>'
    )
    sites = parse(text).sites
    assert [(one.name, one.types, one.extends) for one in sites] == [
        ("a", ("Recipe", "Movie"), "b"),
        ("b", ("Thing", "Book"), ""),
        ("c", (), ""),
    ]
    assert sites[0].description == "Home cooking"


def test_a_site_brings_example_questions_and_a_later_layer_its_own(parse: Parse) -> None:
    first = parse(
        '<root><Site ref="a"><question> Which\n tent? </question><question>"Boots &amp; packs"</question>'
        '</Site><Site ref="b"><question>Kept?</question></Site></root>'
    )
    later = parse('<root><Site ref="a"><question>Which boots?</question></Site><Site ref="b"/></root>')
    assert first.sites[0].questions == ("Which tent?", '"Boots & packs"')
    library = PromptLibrary([[first], [later]])
    assert library.site("a").questions == ("Which boots?",)
    assert library.site("b").questions == ("Kept?",)
    assert library.site("c").questions == ()


def test_the_default_site_of_nlweb_is_every_site(parse: Parse) -> None:
    parsed = parse(f'<root><Site id="default"><Item><Prompt {REF}>{OK}</Prompt></Item></Site></root>')
    assert only_prompt(parsed).site is None
    assert parsed.sites == ()


CUTS = st.tuples(
    st.integers(0, len(SHIPPED)),
    st.integers(0, 40),
    st.binary(max_size=6)
    | st.sampled_from(
        [
            b"<",
            b">",
            b"&",
            b"</",
            b"<!--",
            b"-->",
            b"]]>",
            b"<![CDATA[",
            b"<?x",
            b"?>",
            b'"',
            b"{request.",
            b"<a>",
            b"<Prompt>",
        ]
    ),
)


@given(st.lists(CUTS, min_size=1, max_size=3))
def test_no_damage_to_a_file_raises_or_lacks_a_place(cuts: list[tuple[int, int, bytes]]) -> None:
    raw = SHIPPED
    for at, length, put in cuts:
        raw = raw[:at] + put + raw[at + length :]
    lines = raw.count(b"\n") + raw.count(b"\r") + 1
    for problem in parse_bytes(raw, "p.xml").problems:
        assert 1 <= problem.line <= lines
        assert problem.col >= 1
        assert problem.what


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("<root>a ]]> b</root>", "]]&gt;"),
        ("<root>&#0;</root>", "write the letter itself"),
        ('<root><Thing ="x"/></root>', 'name="value"'),
        ("<root>\n<promptString>x</promptString></root>", "inside a `<Prompt>`"),
    ],
)
def test_what_is_wrong_comes_with_what_to_do(text: str, advice: str) -> None:
    problems = parse_bytes(text.encode(), "a.xml").problems
    assert advice in problems[0].what
