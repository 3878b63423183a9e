"""What finding and filling a prompt costs, and loading many sites' files.

    python -m bench.prompts [--sites 10000]

Prints microseconds a call (the quickest of several runs: whatever else the machine does only adds to it),
seconds and megabytes for the load, and what a running server's looks at so many files cost.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import resources
from core.prompting import PromptLibrary, Value, fill, fill_batch
from core.prompting.watch import PromptFiles

SITE = """<root>
  <Site ref="site-{n}" types="Recipe">
    <description>Site number {n}</description>
    <Recipe>
      <Prompt ref="DetectMemoryRequestPrompt" tier="high">
        <promptString>Site {n}. {{request.rawQuery}} Is there something to remember? {words}</promptString>
        <returnStruc>{{"is_memory_request": "True or False", "memory_request": "what to keep"}}</returnStruc>
        <example query="remember I am vegan"><expect>{{"is_memory_request": true}}</expect></example>
      </Prompt>
    </Recipe>
  </Site>
</root>
"""


def microseconds(call: Callable[[], Any], count: int = 500, runs: int = 25) -> float:
    def once() -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count * 1e6

    return min(once() for _ in range(runs))


def megabytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load_many(count: int) -> PromptLibrary:
    with tempfile.TemporaryDirectory() as folder:
        for n in range(count):
            text = SITE.format(n=n, words="Only what is asked for counts. " * 30)
            (Path(folder) / f"site-{n}.xml").write_text(text, encoding="utf-8")
        start = time.perf_counter()
        files = PromptFiles([resources.site_types()], [resources.prompts_dir(), Path(folder)])
        print(f"load {count} site files: {time.perf_counter() - start:.2f} s, peak {megabytes():.0f} MB")
        looked = microseconds(files.look, count=1, runs=5) / 1000
        changed = Path(folder) / "site-7.xml"
        changed.write_text(changed.read_text(encoding="utf-8").replace("Site 7.", "Site seven."))
        start = time.perf_counter()
        assert files.look() == [changed]
        took = (time.perf_counter() - start) * 1000
        print(f"look at all of them: {looked:.0f} ms; with one that changed: {took:.0f} ms")
    return files.current


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=10_000)
    library = load_many(parser.parse_args().sites)
    item = {
        "@type": "Recipe",
        "name": "Farinata",
        "recipeIngredient": ["chickpea flour"] * 8,
        "text": "x" * 1200,
    }
    values: dict[str, Value] = {
        "request.query": "quick vegan dinner",
        "request.memory": ["vegan"],
        "item.description": item,
    }
    question: dict[str, Value] = {"request.rawQuery": "remember I am vegan", "request.site": "site-7"}

    def memory() -> object:
        prompt = library.find("DetectMemoryRequestPrompt", "site-7", "Recipe")
        return fill(prompt, question) if prompt else None

    def ranking() -> object:
        prompt = library.find("RankingPrompt", "site-7", "Recipe")
        return fill(prompt, values) if prompt else None

    def batch() -> object:
        prompt = library.find("RankingPrompt", "site-7", "Recipe")
        return fill_batch(prompt, values, [(f"t{n}", item) for n in range(10)]) if prompt else None

    reply = library.find("RankingPrompt", "site-7", "Recipe")
    assert reply is not None and reply.reply is not None  # noqa: PT018
    parse = reply.reply.parse
    rows: list[tuple[str, Callable[[], object]]] = [
        ("find, seen before", lambda: library.find("RankingPrompt", "site-7", "Recipe")),
        ("find, not seen before", lambda: library.chain("RankingPrompt", "site-7", "Recipe")),
        ("find + fill, memory prompt", memory),
        ("find + fill, ranking prompt, one item", ranking),
        ("find + fill, ranking prompt, ten items", batch),
        ("parse a reply", lambda: parse('{"score": 85, "description": "A quick dish of chickpeas."}')),
        ("parse a fenced reply", lambda: parse('```json\n{"score": "85/100", "description": "x",}\n```')),
    ]
    for name, call in rows:
        print(f"{name}: {microseconds(call):.1f} us")


if __name__ == "__main__":
    main()
