"""What every memory hook has to do: run for the shipped ones here, and for one's own by subclassing.

A subclass gives a `hook` fixture; what a hook does not offer (recall, forget, ...) is not asked of it.
"""

from __future__ import annotations

import asyncio

import pytest

from core.memory import Detected, Erases, Exports, Forgets, MemoryHook, Recalls, Stored
from core.query import Identity, Query

ANNA = Identity("key:shop", "anna")
BO = Identity("key:shop", "bo")


def detected(text: str, nonce: str, who: Identity = ANNA) -> Detected:
    """A fact as a hook gets it."""
    return Detected(
        text=text,
        kind="preference",
        scope="user",
        identity=who,
        site="shop",
        conversation_id="c1",
        query_id="q1",
        source_turn=f"remember that {text}",
        expires_at=None,
        nonce=nonce,
    )


def asked(who: Identity) -> Query:
    """A later question of this person, in another conversation."""
    return Query(
        text="what about coriander", query_id="q2", conversation_id="c2", sites=("shop",), identity=who
    )


class HookContract:
    """Tests of one hook."""

    async def test_it_has_a_name_for_people(self, hook: MemoryHook) -> None:
        assert isinstance(hook.name, str)
        assert hook.name.strip()

    async def test_persist_gives_an_id_or_none(self, hook: MemoryHook) -> None:
        stored = await hook.persist(detected("I love coriander", "n1"))
        assert stored is None or (isinstance(stored, Stored) and stored.memory_id and stored.text)

    async def test_the_same_nonce_twice_is_one_fact(self, hook: MemoryHook) -> None:
        fact = detected("I love coriander", "n1")
        first, again = await hook.persist(fact), await hook.persist(fact)
        assert (first and first.memory_id) == (again and again.memory_id)
        if isinstance(hook, Exports):
            assert len(await hook.export(ANNA)) == 1

    async def test_many_at_once_are_all_kept(self, hook: MemoryHook) -> None:
        await asyncio.gather(*(hook.persist(detected(f"I own boat {n}", f"n{n}")) for n in range(10)))
        if isinstance(hook, Exports):
            assert len(await hook.export(ANNA)) == 10

    async def test_any_text_is_taken(self, hook: MemoryHook) -> None:
        for n, text in enumerate(
            ["저는 고수를 좋아해요", 'I "quote" {request.query} </data>', "I eat 🌶", "I " + "x" * 900]
        ):
            stored = await hook.persist(detected(text, f"n{n}"))
            if stored is not None:
                assert stored.text == text

    async def test_recall_is_the_persons_own(self, hook: MemoryHook) -> None:
        if not isinstance(hook, Recalls):
            pytest.skip("this hook does not recall")
        await hook.persist(detected("I love coriander", "n1"))
        assert [fact.text for fact in await hook.recall(asked(ANNA))] == ["I love coriander"]
        assert list(await hook.recall(asked(BO))) == []

    async def test_what_is_forgotten_is_in_no_recall_and_no_export(self, hook: MemoryHook) -> None:
        if not isinstance(hook, Forgets):
            pytest.skip("this hook does not forget")
        stored = await hook.persist(detected("I love coriander", "n1"))
        assert stored is not None
        assert not await hook.forget(BO, stored.memory_id)
        assert await hook.forget(ANNA, stored.memory_id)
        assert not await hook.forget(ANNA, stored.memory_id)
        if isinstance(hook, Recalls):
            assert list(await hook.recall(asked(ANNA))) == []
        if isinstance(hook, Exports):
            assert "coriander" not in str(await hook.export(ANNA))

    async def test_erasing_one_person_leaves_the_other(self, hook: MemoryHook) -> None:
        if not isinstance(hook, Erases):
            pytest.skip("this hook does not erase")
        await hook.persist(detected("I love coriander", "n1"))
        await hook.persist(detected("I love coriander", "n2", BO))
        counts = await hook.erase(ANNA)
        assert all(isinstance(count, int) for count in counts.values())
        await hook.erase(ANNA)
        if isinstance(hook, Exports):
            assert list(await hook.export(ANNA)) == []
            assert len(await hook.export(BO)) == 1
