"""What finding and filling a prompt costs, and loading many sites' files.

    python -m bench.prompts [--sites 10000]

Prints microseconds a call (median of several runs) and seconds and megabytes for the load.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core import resources
from core.prompting import PromptLibrary, Value, fill, fill_batch

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


def microseconds(call: Callable[[], Any], count: int = 2000, runs: int = 7) -> float:
    def once() -> float:
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count * 1e6

    return statistics.median(once() for _ in range(runs))


def megabytes() -> float:
    """Peak resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load_many(count: int) -> PromptLibrary:
    with tempfile.TemporaryDirectory() as folder:
        for n in range(count):
            text = SITE.format(n=n, words="Only what is asked for counts. " * 30)
            (Path(folder) / f"site-{n}.xml").write_text(text, encoding="utf-8")
        start = time.perf_counter()
        library = PromptLibrary.load(resources.site_types(), [resources.prompts_dir(), Path(folder)])
        print(f"load {count} site files: {time.perf_counter() - start:.2f} s, peak {megabytes():.0f} MB")
    return library


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
