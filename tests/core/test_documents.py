"""What is kept of documents between two searches: never more than still stands in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import sqlalchemy as sa

from core import documents as module
from core.access import EVERYTHING, Scope
from core.database import Database, chunks
from core.documents import Candidate, Document, Documents
from core.ingestion.chunks import Chunk
from core.retrieval import Found

PUBLIC = Scope(None, private=False)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(None, tmp_path)
    yield database
    await database.close()


def soup(version: str, name: str, tags: tuple[str, ...] = ()) -> Document:
    item = orjson.dumps({"@type": "Recipe", "name": name})
    return Document("kitchen", "soup", version, "", name, ("Recipe",), "en", item, "feed", 2, tags)


async def publish(documents: Documents, document: Document) -> None:
    cut = [Chunk(n, f"{document.name}, part {n}", 10 * n, 10 * n + 9) for n in range(2)]
    await documents.announce([(document.key, cut)])
    await documents.publish([document])


def hit(version: str, n: int = 0, score: float = 0.5) -> Found:
    return Found("kitchen", "soup", version, n, score, {"bm25": score})


def told(found: list[Candidate]) -> list[tuple[str, str, float]]:
    return [(one.document.name, one.text, one.score) for one in found]


async def test_what_is_kept_has_the_chunk_and_the_score_of_each_search(database: Database) -> None:
    documents = Documents(database)
    await publish(documents, soup("1", "Bean soup"))
    for score in (0.5, 0.9):
        found = await documents.live(EVERYTHING, [hit("1", 1, score), hit("1", 0, 0.1), hit("1", 7)])
        assert told(found) == [
            ("Bean soup", "Bean soup, part 1", score),
            ("Bean soup", "Bean soup, part 0", 0.1),
        ]


async def test_passage_that_was_found_before_is_not_read_again(database: Database) -> None:
    documents = Documents(database)
    await publish(documents, soup("1", "Bean soup"))
    before = await documents.live(EVERYTHING, [hit("1")])
    await database.write(lambda c: c.execute(sa.update(chunks).values(text="never written so")).close())
    assert await documents.live(EVERYTHING, [hit("1")]) == before


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_replaced_document_is_found_with_its_new_text_alone(
    database: Database, tmp_path: Path, elsewhere: bool
) -> None:
    documents = Documents(database)
    await publish(documents, soup("1", "Bean soup"))
    assert told(await documents.live(EVERYTHING, [hit("1")])) == [("Bean soup", "Bean soup, part 0", 0.5)]
    other = await Database.open(None, tmp_path) if elsewhere else database  # another process has its own
    await publish(Documents(other), soup("2", "Pea soup"))
    found = await documents.live(EVERYTHING, [hit("1"), hit("2")])
    assert told(found) == [("Pea soup", "Pea soup, part 0", 0.5)]
    await publish(Documents(other), soup("1", "Bean soup", ("diet:vegan",)))
    (again,) = await documents.live(EVERYTHING, [hit("1"), hit("2")])
    assert (again.document.name, again.document.tags) == ("Bean soup", ("diet:vegan",))
    await Documents(other).retire("kitchen", ["soup"])
    assert await documents.live(EVERYTHING, [hit("1"), hit("2")]) == []
    if elsewhere:
        await other.close()


async def test_new_tags_and_a_site_made_private_hold_at_once(database: Database) -> None:
    documents = Documents(database)
    await publish(documents, soup("1", "Bean soup"))
    vegan = ({"diet": ["vegan"]},)
    assert len(await documents.live(PUBLIC, [hit("1")])) == 1
    assert await documents.live(PUBLIC, [hit("1")], vegan) == []
    await documents.set_tags("kitchen", ["soup"], ["diet:vegan"])
    (found,) = await documents.live(PUBLIC, [hit("1")], vegan)
    assert found.document.tags == ("diet:vegan",)
    assert await documents.live(Scope(frozenset({"shop"}), private=True), [hit("1")]) == []
    assert await documents.live(Scope(frozenset(), private=True), [hit("1")]) == []
    await documents.set_access("kitchen", "private")
    assert await documents.live(PUBLIC, [hit("1")]) == []
    assert await documents.site_names(PUBLIC) == []
    assert len(await documents.live(Scope.of(["kitchen"]), [hit("1")])) == 1
    assert await documents.site_names(Scope.of(["kitchen", "shop"])) == ["kitchen"]


async def test_large_items_do_not_pile_up(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PASSAGE_BYTES", 10_000)
    documents = Documents(database)
    for n in range(20):
        item = orjson.dumps({"name": "x" * 2000})
        one = Document("kitchen", f"{n}", "1", "", f"Soup {n}", ("Thing",), "", item, "", 1)
        await documents.announce([(one.key, [Chunk(0, "text", 0, 4)])])
        await documents.publish([one])
        found = [Found("kitchen", f"{k}", "1", 0, 0.5, {}) for k in range(n + 1)]
        assert len(await documents.live(EVERYTHING, found)) == n + 1
        assert documents._passages.bytes <= 10_000
