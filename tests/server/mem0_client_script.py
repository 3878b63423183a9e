"""The official Mem0 client's round trip: `mem0_client_script.py URL KEY OTHER_KEY`."""

from __future__ import annotations

import sys

from mem0 import MemoryClient


def texts(listed: dict[str, list[dict[str, str]]]) -> list[str]:
    return sorted(one["memory"] for one in listed["results"])


def refused(call: object, *args: object, **more: object) -> bool:
    try:
        call(*args, **more)  # type: ignore[operator]
    except Exception:  # noqa: BLE001 - the client has an error of its own for each status
        return True
    return False


def main(url: str, key: str, other_key: str) -> None:
    client = MemoryClient(host=url, api_key=key)
    anna, bo = {"user_id": "anna"}, {"user_id": "bo"}
    added = client.add([{"role": "user", "content": "I love coriander"}], user_id="anna")
    memory_id = added["results"][0]["id"]
    assert added["results"][0]["event"] == "ADD"
    client.add("My oven is small", user_id="anna", metadata={"room": "kitchen"})
    client.add("I live in Turin", user_id="bo", agent_id="guide")

    assert texts(client.search("coriander", filters=anna)) == ["I love coriander"]
    assert texts(client.get_all(filters=anna)) == ["I love coriander", "My oven is small"]
    assert texts(client.get_all(filters={"AND": [anna]}, page=1, page_size=10)) == [
        "I love coriander",
        "My oven is small",
    ]
    assert client.get(memory_id)["memory"] == "I love coriander"
    assert client.update(memory_id, text="I love fresh coriander")["memory"] == "I love fresh coriander"
    assert [step["event"] for step in client.history(memory_id)] == ["ADD", "UPDATE"]

    assert texts(client.search("oven coriander", filters=bo)) == []
    stranger = MemoryClient(host=url, api_key=other_key)
    assert texts(stranger.get_all(filters=anna)) == []
    assert refused(stranger.get, memory_id)
    assert refused(stranger.delete, memory_id)
    assert refused(client.delete_all)
    assert refused(client.delete_all, user_id="*")
    assert refused(client.get_all, filters={"user_id": "*"})
    assert refused(client.search, "oven", filters={"user_id": ""})

    names = {(one["type"], one["name"]) for one in client.users()["results"]}
    assert names == {("user", "anna"), ("user", "bo"), ("agent", "guide")}
    client.batch_update([{"memory_id": memory_id, "text": "I love dried coriander"}])
    assert client.get(memory_id)["memory"] == "I love dried coriander"
    client.batch_delete([{"memory_id": memory_id}])
    assert refused(client.get, memory_id)
    one = client.get_all(filters=anna)["results"][0]
    assert one["metadata"] == {"room": "kitchen"}
    client.delete(one["id"])
    assert texts(client.get_all(filters=anna)) == []

    client.add("My oven is small", user_id="anna")
    client.delete_all(user_id="anna")
    assert texts(client.get_all(filters=anna)) == []
    assert texts(client.get_all(filters=bo)) == ["I live in Turin"]
    client.delete_users(user_id="bo")
    assert client.users()["results"] == []
    as_documented(client)
    print("all done")


def as_documented(client: MemoryClient) -> None:
    """Calls as the client's own documentation has them, beyond the round trip."""
    dan = {"user_id": "dan"}
    # Nobody's words, and messages without a text.
    assert client.add("\N{THUMBS UP SIGN}", user_id="dan", infer=False)["results"] == []
    calls = [{"role": "assistant", "content": None}, {"role": "user", "content": "I live in Genoa"}]
    (genoa,) = client.add(calls, user_id="dan", infer=False, expiration_date="9999-12-31")["results"]
    assert client.get(genoa["id"])["expiration_date"] == "9999-12-31"
    assert client.update(genoa["id"], expiration_date=None)["expiration_date"] < "9999"
    assert client.update(genoa["id"], timestamp=1_600_000_000)["created_at"].startswith("2020-09-13")
    turin = client.update(genoa["id"], text="I live in Turin", expiration_date="2035-01-02")
    assert (turin["memory"], turin["expiration_date"]) == ("I live in Turin", "2035-01-02")

    # A memory that was superseded goes with the one that stands for it.
    (oslo,) = client.add("I live in Oslo", user_id="dan", infer=False)["results"]
    assert client.get(genoa["id"])["memory"] == "I live in Turin"
    client.delete(oslo["id"], delete_linked=True)
    assert refused(client.get, genoa["id"])
    assert texts(client.get_all(filters=dan)) == []

    # Metadata and days count in every memory, not in the nearest few.
    for n in range(12):
        client.add(
            f"I cook pasta dish {n}", user_id="dan", infer=False, metadata={"n": n}, timestamp=n * 10**8
        )
    for n in (0, 11):
        found = client.search("pasta dish", filters={"AND": [dan, {"metadata": {"n": n}}]}, top_k=1)
        assert texts(found) == [f"I cook pasta dish {n}"]
    assert client.get_all(filters=dan, start_date="2004-01-01", end_date="2005-01-01")["count"] == 1
    assert client.get_all(filters=dan, start_date="2030-01-01")["results"] == []
    assert refused(client.get_all, filters=dan, categories=["food"])
    assert refused(client.search, "pasta", filters=dan, categories=["food"])
    pages = [client.get_all(filters=dan, page=page, page_size=5)["results"] for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [5, 5, 2]

    # A batch is changed as a whole or not at all.
    one, two = (page["id"] for page in pages[0][:2])
    before = client.get(one)["memory"]
    wrong = [{"memory_id": one, "text": "I cook soup"}, {"memory_id": two, "metadata": {"user_id": "bo"}}]
    assert refused(client.batch_update, wrong)
    assert client.get(one)["memory"] == before

    # One memory of four entities.
    client.add("I own a boat", user_id="eve", agent_id="guide", app_id="shop", run_id="r/1", infer=False)
    client.delete_users()
    assert client.users()["results"] == []
    client.add("I own a boat", user_id="eve", agent_id="guide", infer=False)
    client.reset()
    assert client.users()["results"] == []


if __name__ == "__main__":
    main(*sys.argv[1:])
