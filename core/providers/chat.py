"""The chat model that the settings name, for the server and for the command line."""

from __future__ import annotations

from core.providers.base import ChatModel
from core.settings import LlmSettings


def chat_model(llm: LlmSettings) -> ChatModel | None:
    """The model, or None where none is configured; the caller closes it."""
    if not llm.configured:
        return None
    # Its client takes a second to import, and many servers have no model.
    from core.providers.openai import OpenAIChat, make_client

    key = llm.api_key.get_secret_value() if llm.api_key is not None else None
    return OpenAIChat(
        make_client(llm.base_url, key, max_concurrency=llm.max_concurrency),
        models={"high": llm.model_high, "low": llm.model_low},
        timeout_s=llm.timeout_s,
        max_concurrency=llm.max_concurrency,
        max_retries=llm.max_retries,
    )
