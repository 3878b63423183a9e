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
    print("all done")


if __name__ == "__main__":
    main(*sys.argv[1:])
