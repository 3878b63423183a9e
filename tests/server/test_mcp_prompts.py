"""What agents' people pick from: example questions, completions of what they type, documents as resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.conftest import KITCHEN, Serve, Served, recipe
from tests.server.test_mcp import ERAS, PRIVATE, connected, data

QUESTIONS = ["What can I cook with tofu?", "Qual è il dolce più semplice?", "有什么汤？"]
SITES = f"""<root>
  <Site ref="kitchen"><description>home cooking</description>
    {"".join(f"<question>{one}</question>" for one in QUESTIONS)}
  </Site>
  <Site ref="vault"><question>Where is the gold?</question></Site>
</root>"""
REORDERED = SITES.replace(f"<question>{QUESTIONS[0]}</question>", "").replace(
    "</description>", f"</description><question>And now?</question><question>{QUESTIONS[0]}</question>"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "prompts"
    made.mkdir()
    (made / "sites.xml").write_text(SITES, encoding="utf-8")
    return made


async def kitchen(serve: Serve, folder: Path, **more: Any) -> Served:
    server = await serve(prompts_dir=folder, **more)
    await server.load("kitchen", KITCHEN)
    return server


async def titles(client: Client) -> dict[str, str]:
    return {one.name: str(one.title) for one in (await client.list_prompts()).prompts}


def message(result: types.GetPromptResult) -> str:
    (only,) = result.messages
    assert only.role == "user"
    assert isinstance(only.content, types.TextContent)
    return only.content.text


@ERAS
async def test_the_examples_of_a_site_are_prompts_that_name_tool_site_and_question(
    serve: Serve, folder: Path, era: str
) -> None:
    server = await kitchen(serve, folder)
    async with connected(server, era) as client:
        listed = await titles(client)
        assert list(listed.values()) == ["Ask the sites", *QUESTIONS]
        for name, question in list(listed.items())[1:]:
            text = message(await client.get_prompt(name))
            assert text.startswith(question)
            assert '`ask` with `site` "kitchen"' in text
        name = next(name for name, title in listed.items() if title == QUESTIONS[0])
        assert name.startswith("kitchen.what-can-i-cook-with-tofu.")
        written = message(await client.get_prompt(name, {"mode": "generate"}))
        assert '`mode` "generate"' in written


async def test_names_are_unique_and_stay_when_the_file_is_put_in_another_order(
    serve: Serve, folder: Path
) -> None:
    server = await kitchen(serve, folder)
    async with connected(server) as client:
        before = await titles(client)
    (folder / "sites.xml").write_text(REORDERED, encoding="utf-8")
    other = await serve(prompts_dir=folder, folder="other")
    await other.load("kitchen", KITCHEN)
    async with connected(other) as client:
        after = await titles(client)
    assert list(after.values())[1] == "And now?"
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1


async def test_a_question_of_ones_own_is_a_prompt_with_arguments(serve: Serve, folder: Path) -> None:
    server = await kitchen(serve, folder)
    async with connected(server) as client:
        (own, *_) = (await client.list_prompts()).prompts
        needed = {one.name: one.required for one in own.arguments or []}
        assert needed == {"question": True, "site": False, "mode": False}
        text = message(await client.get_prompt("ask", {"question": "a soup", "site": "kitchen"}))
        assert text.startswith("a soup\n")
        assert '`site` "kitchen"' in text


async def test_what_no_prompt_can_be_made_of_is_said(serve: Serve, folder: Path) -> None:
    server = await kitchen(serve, folder)
    wrong: list[tuple[str, dict[str, str], str]] = [
        ("nothing", {}, "no prompt"),
        ("ask", {}, "question"),
        ("ask", {"question": " "}, "question"),
        ("ask", {"question": "x" * 8001}, "question"),
        ("ask", {"question": "soup", "site": "nowhere"}, "kitchen"),
        ("ask", {"question": "soup", "mode": "shout"}, "mode"),
        ("ask", {"question": "soup", "colour": "red"}, "colour"),
    ]
    async with connected(server) as client:
        for name, arguments, told in wrong:
            with pytest.raises(MCPError, match=told):
                await client.get_prompt(name, arguments)


async def test_a_caller_gets_the_examples_of_its_own_sites_alone(serve: Serve, folder: Path) -> None:
    server = await kitchen(serve, folder, auth=PRIVATE)
    await server.load("vault", [recipe("gold", "Gold stew", "A stew of gold.")])
    async with connected(server, token="all-read-key") as client:
        name = next(n for n, title in (await titles(client)).items() if title == "Where is the gold?")
    async with connected(server, token="kitchen-key-1") as client:
        assert "Where is the gold?" not in (await titles(client)).values()
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt(name)
        ref = types.PromptReference(name="ask")
        completed = await client.complete(ref, {"name": "site", "value": "v"})
        assert completed.completion.values == []
        read = [one for n in ("vault/gold", "vault/nothing") for one in [await refused(client, n)]]
        assert read[0] == read[1]


async def refused(client: Client, name: str) -> str:
    with pytest.raises(MCPError) as failed:
        await client.read_resource(f"askable://documents/{name}")
    return str(failed.value)


@ERAS
async def test_arguments_are_completed_from_what_there_is(serve: Serve, folder: Path, era: str) -> None:
    server = await kitchen(serve, folder)
    await server.load("garage", [recipe("tyre", "Tofu-coloured tyre", "Loosen the wheel nuts.")])
    async with connected(server, era) as client:

        async def completed(name: str, value: str, context: dict[str, str] | None = None) -> list[str]:
            ref = types.PromptReference(name="ask")
            got = await client.complete(ref, {"name": name, "value": value}, context_arguments=context)
            return got.completion.values

        assert await completed("site", "kit") == ["kitchen"]
        assert await completed("mode", "s") == ["summarize"]
        assert await completed("question", "tof") == ["Tofu curry", "Tofu-coloured tyre"]
        assert await completed("question", "tof", {"site": "kitchen"}) == ["Tofu curry"]
        assert await completed("nothing", "x") == []


@ERAS
async def test_a_document_is_a_resource_by_the_id_that_the_tools_give(
    serve: Serve, folder: Path, era: str
) -> None:
    server = await kitchen(serve, folder)
    async with connected(server, era) as client:
        (template,) = (await client.list_resource_templates()).resource_templates
        found = data(await client.call_tool("search", {"query": "lemon tart"}))["results"][0]
        site, _, document = found["id"].partition("/")
        uri = template.uri_template.format(site=site, document_id=document)
        text, item = (await client.read_resource(uri)).contents
    assert isinstance(text, types.TextResourceContents)
    assert isinstance(item, types.TextResourceContents)
    assert "sharp lemon cream" in text.text
    assert (text.mime_type, item.mime_type) == ("text/plain", "application/ld+json")
    assert '"@type":"Recipe"' in item.text


async def test_what_is_no_resource_is_an_error_that_names_it(serve: Serve, folder: Path) -> None:
    server = await kitchen(serve, folder)
    wrong = ["kitchen", "kitchen/", "KITCHEN/x", "kitchen/%2e%2e%2fpasswd", "../etc", "kitchen/none", ""]
    async with connected(server) as client:
        for name in wrong:
            assert "no such resource" in await refused(client, name)
