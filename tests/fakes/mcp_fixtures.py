"""What the protocol's conformance suite calls: its tools, prompts and resources beside ours, on our server.

The suite tests a transport and a dispatcher through things with fixed names, which no product has. They are
put over the handlers of the real server, so that all else (HTTP, sessions, streams, errors) is what clients
get.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.jsonrpc import MISSING_REQUIRED_CLIENT_CAPABILITY

from core.messages import AskUser, Question
from server.mcp.asking_back import Asked, InputWanted
from server.mcp.notes import Notes

Context = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams
Reply = types.CallToolResult | types.InputRequiredResult
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
        "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
WAV = base64.b64encode(
    b"RIFF&\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x02\0\0\0\0\0"
).decode()
SECRET = b"of the fixtures"
NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COLOUR_FORM = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
OK_FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
CONTEXT_FORM = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _said(*parts: types.ContentBlock | str, is_error: bool = False) -> types.CallToolResult:
    content = [types.TextContent(text=part) if isinstance(part, str) else part for part in parts]
    return types.CallToolResult(content=content, is_error=is_error)


def _text_resource(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    )


def _saying(*parts: types.ContentBlock | str, is_error: bool = False) -> Tool:
    async def run(_ctx: Context, _params: Params) -> Reply:
        return _said(*parts, is_error=is_error)

    return run


Tool = Callable[[Context, Params], Awaitable[Reply]]


async def _with_logging(ctx: Context, _params: Params) -> Reply:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        note = types.LoggingMessageNotificationParams(level="info", data=text)
        await ctx.session.send_notification(
            types.LoggingMessageNotification(params=note), related_request_id=ctx.request_id
        )
        await anyio.sleep(0.05)
    return _said("done")


async def _with_progress(ctx: Context, _params: Params) -> Reply:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return _said("done")


def _sampling(text: str, tokens: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens)
    )


def _form(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


async def _with_sampling(ctx: Context, params: Params) -> Reply:
    reply = await ctx.session.send_request(
        _sampling(str((params.arguments or {})["prompt"]), 100),
        types.CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    text = reply.content.text if isinstance(reply.content, types.TextContent) else ""
    return _said(f"LLM response: {text}")


async def _elicited(ctx: Context, message: str, fields: dict[str, Any], required: list[str]) -> Reply:
    schema = {"type": "object", "properties": fields, "required": required}
    reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return _said(f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}")


async def _with_elicitation(ctx: Context, params: Params) -> Reply:
    fields = {name: {"type": "string", "description": name} for name in ("username", "email")}
    return await _elicited(ctx, str((params.arguments or {})["message"]), fields, list(fields))


async def _with_defaults(ctx: Context, _params: Params) -> Reply:
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await _elicited(ctx, "Please look through these", fields, [])


async def _with_enums(ctx: Context, _params: Params) -> Reply:
    plain = ["option1", "option2", "option3"]

    def titled(word: str) -> list[dict[str, str]]:
        return [
            {"const": f"value{n}", "title": f"{nth} {word}"}
            for n, nth in enumerate(("First", "Second", "Third"), 1)
        ]

    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }
    return await _elicited(ctx, "Please choose", fields, [])


# ---------------------------------------------------------------- what ends with questions (2026-07-28)


def _wanted(requests: dict[str, Any], state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def _given(params: types.InputResponseRequestParams, key: str) -> dict[str, Any] | None:
    reply = (params.input_responses or {}).get(key)
    if not isinstance(reply, types.ElicitResult) or reply.action != "accept":
        return None
    return dict(reply.content or {})


def _sealed(text: str) -> str:
    return f"{text}.{hmac.new(SECRET, text.encode(), hashlib.sha256).hexdigest()}"


def _unsealed(state: str | None) -> str:
    text = (state or "").rpartition(".")[0]
    if state is None or not hmac.compare_digest(_sealed(text), state):
        raise MCPError(types.INVALID_PARAMS, "requestState is not what was given")
    return text


async def _input_elicitation(_ctx: Context, params: Params) -> Reply:
    given = _given(params, "user_name")
    if not given or "name" not in given:
        return _wanted({"user_name": _form("What is your name?", NAME_FORM)})
    return _said(f"Hello, {given['name']}!")


async def _input_sampling(_ctx: Context, params: Params) -> Reply:
    reply = (params.input_responses or {}).get("capital_question")
    if not isinstance(reply, types.CreateMessageResult | types.CreateMessageResultWithTools):
        return _wanted({"capital_question": _sampling("What is the capital of France?", 100)})
    return _said(reply.model_dump_json())


async def _input_roots(_ctx: Context, params: Params) -> Reply:
    reply = (params.input_responses or {}).get("client_roots")
    if not isinstance(reply, types.ListRootsResult):
        return _wanted({"client_roots": types.ListRootsRequest()})
    return _said(reply.model_dump_json())


async def _input_state(_ctx: Context, params: Params) -> Reply:
    if params.input_responses is None and params.request_state is None:
        return _wanted({"confirm": _form("Please confirm", OK_FORM)}, _sealed("round 1"))
    _unsealed(params.request_state)
    return _said("state-ok")


async def _input_several(_ctx: Context, params: Params) -> Reply:
    if set(params.input_responses or {}) >= {"user_name", "greeting", "client_roots"}:
        _unsealed(params.request_state)
        return _said("thanks for all three")
    requests = {
        "user_name": _form("What is your name?", NAME_FORM),
        "greeting": _sampling("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    return _wanted(requests, _sealed("several"))


async def _input_rounds(_ctx: Context, params: Params) -> Reply:
    if params.request_state is None:
        return _wanted({"step1": _form("Step 1: What is your name?", NAME_FORM)}, _sealed("1"))
    if _unsealed(params.request_state) == "1":
        return _wanted({"step2": _form("Step 2: What is your favorite color?", COLOUR_FORM)}, _sealed("2"))
    return _said("done after two rounds")


async def _input_by_capability(ctx: Context, params: Params) -> Reply:
    able = ctx.session.client_capabilities
    requests: dict[str, Any] = {}
    if able is not None and able.elicitation is not None:
        requests["user_name"] = _form("What is your name?", NAME_FORM)
    if able is not None and able.sampling is not None:
        requests["greeting"] = _sampling("Generate a greeting", 50)
    if params.input_responses is None and requests:
        return _wanted(requests)
    return _said("nothing can be asked")


async def _without_capability(_ctx: Context, _params: Params) -> Reply:
    needed = {"requiredCapabilities": {"sampling": {}}}
    raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this needs sampling", needed)


async def _asking_while_it_streams(ctx: Context, params: Params) -> Reply:
    await ctx.session.report_progress(1)
    try:
        said = await Asked(ctx, params).ask(AskUser("In which city?", (Question("city", "In which city?"),)))
    except InputWanted as wanted:
        return wanted.result
    return _said(said or "not said")


async def _warning(ctx: Context, _params: Params) -> Reply:
    await Notes().warner(ctx)("a batch could not be judged")
    return _said("done")


async def _with_header(_ctx: Context, params: Params) -> Reply:
    return _said(json.dumps(params.arguments))


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
TEXT = {"type": "string"}
MIXED = _text_resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
TOOLS: dict[str, tuple[dict[str, Any], Tool]] = {
    "test_simple_text": (EMPTY, _saying("This is a simple text response for testing.")),
    "test_image_content": (EMPTY, _saying(types.ImageContent(data=PNG, mime_type="image/png"))),
    "test_audio_content": (EMPTY, _saying(types.AudioContent(data=WAV, mime_type="audio/wav"))),
    "test_embedded_resource": (
        EMPTY,
        _saying(
            _text_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
        ),
    ),
    "test_multiple_content_types": (
        EMPTY,
        _saying("Multiple content types test:", types.ImageContent(data=PNG, mime_type="image/png"), MIXED),
    ),
    "test_error_handling": (
        EMPTY,
        _saying("This tool intentionally returns an error for testing", is_error=True),
    ),
    "test_tool_with_logging": (EMPTY, _with_logging),
    "test_tool_with_progress": (EMPTY, _with_progress),
    "test_sampling": (_object(prompt=TEXT), _with_sampling),
    "test_elicitation": (_object(message=TEXT), _with_elicitation),
    "test_elicitation_sep1034_defaults": (EMPTY, _with_defaults),
    "test_elicitation_sep1330_enums": (EMPTY, _with_enums),
    "json_schema_2020_12_tool": (SCHEMA_2020_12, _saying("fine")),
    "test_input_required_result_elicitation": (EMPTY, _input_elicitation),
    "test_input_required_result_sampling": (EMPTY, _input_sampling),
    "test_input_required_result_list_roots": (EMPTY, _input_roots),
    "test_input_required_result_request_state": (EMPTY, _input_state),
    "test_input_required_result_tampered_state": (EMPTY, _input_state),
    "test_input_required_result_multiple_inputs": (EMPTY, _input_several),
    "test_input_required_result_multi_round": (EMPTY, _input_rounds),
    "test_input_required_result_capabilities": (EMPTY, _input_by_capability),
    "test_missing_capability": (EMPTY, _without_capability),
    "test_streaming_elicitation": (EMPTY, _asking_while_it_streams),
    "test_logging_tool": (EMPTY, _warning),
    "test_x_mcp_header": (_object(region={"type": "string", "x-mcp-header": "Region"}), _with_header),
}

# ---------------------------------------------------------------- prompts and resources

PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
RESOURCES = {"test://static-text": "text/plain", "test://static-binary": "image/png"}
TEMPLATE = ("test://template/", "/data")


def _prompt_parts(
    name: str, params: types.GetPromptRequestParams
) -> list[types.ContentBlock] | types.InputRequiredResult:
    given = params.arguments or {}
    if name == "test_simple_prompt":
        return [types.TextContent(text="This is a simple prompt for testing.")]
    if name == "test_prompt_with_arguments":
        text = f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
        return [types.TextContent(text=text)]
    if name == "test_prompt_with_embedded_resource":
        embedded = "Embedded resource content for testing."
        return [
            _text_resource(given.get("resourceUri", ""), "text/plain", embedded),
            types.TextContent(text="Please process the embedded resource above."),
        ]
    if name == "test_prompt_with_image":
        return [
            types.ImageContent(data=PNG, mime_type="image/png"),
            types.TextContent(text="Please analyze the image above."),
        ]
    said = _given(params, "user_context")
    if said is None:
        return _wanted({"user_context": _form("What context should the prompt use?", CONTEXT_FORM)})
    return [types.TextContent(text=f"In the context {said.get('context')}")]


def _contents(uri: str) -> types.TextResourceContents | types.BlobResourceContents | None:
    if uri == "test://static-text":
        text = "This is the content of the static text resource."
        return types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    if uri == "test://static-binary":
        return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    if uri.startswith(TEMPLATE[0]) and uri.endswith(TEMPLATE[1]):
        known = uri.removeprefix(TEMPLATE[0]).removesuffix(TEMPLATE[1])
        body = json.dumps({"id": known, "templateTest": True, "data": f"Data for ID: {known}"})
        return types.TextResourceContents(uri=uri, mime_type="application/json", text=body)
    return None


def extend(server: Server[Any]) -> None:
    """Put the fixtures over the server's own handlers; what is not theirs goes on to those."""

    def over(method: str, handler: Callable[[Context, Any, Any], Awaitable[Any]]) -> None:
        own = server.get_request_handler(method)
        assert own is not None, method

        async def handle(ctx: Context, params: Any) -> Any:
            return await handler(ctx, params, own.handler)

        server.add_request_handler(method, own.params_type, handle)

    async def list_tools(ctx: Context, params: Any, own: Any) -> Any:
        ours = await own(ctx, params)
        more = [types.Tool(name=n, description=n, input_schema=s) for n, (s, _) in TOOLS.items()]
        return types.ListToolsResult(tools=[*ours.tools, *more])

    async def call_tool(ctx: Context, params: Params, own: Any) -> Any:
        if params.name in TOOLS:
            return await TOOLS[params.name][1](ctx, params)
        return await own(ctx, params)

    async def list_prompts(ctx: Context, params: Any, own: Any) -> Any:
        ours = await own(ctx, params)
        more = [
            types.Prompt(
                name=name,
                description=name,
                arguments=[types.PromptArgument(name=one, description=one, required=True) for one in named],
            )
            for name, named in PROMPTS.items()
        ]
        return types.ListPromptsResult(prompts=[*ours.prompts, *more])

    async def get_prompt(ctx: Context, params: types.GetPromptRequestParams, own: Any) -> Any:
        if params.name not in PROMPTS:
            return await own(ctx, params)
        parts = _prompt_parts(params.name, params)
        if isinstance(parts, types.InputRequiredResult):
            return parts
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=part) for part in parts]
        )

    async def list_resources(ctx: Context, params: Any, own: Any) -> Any:
        ours = await own(ctx, params)
        more = [types.Resource(uri=u, name=u, description=u, mime_type=m) for u, m in RESOURCES.items()]
        return types.ListResourcesResult(resources=[*ours.resources, *more])

    async def list_templates(ctx: Context, params: Any, own: Any) -> Any:
        ours = await own(ctx, params)
        more = types.ResourceTemplate(
            uri_template="{id}".join(TEMPLATE), name="template", mime_type="application/json"
        )
        return types.ListResourceTemplatesResult(resource_templates=[*ours.resource_templates, more])

    async def read_resource(ctx: Context, params: types.ReadResourceRequestParams, own: Any) -> Any:
        found = _contents(str(params.uri))
        return await own(ctx, params) if found is None else types.ReadResourceResult(contents=[found])

    async def subscribed(_ctx: Context, _params: Any) -> types.EmptyResult:
        return types.EmptyResult()

    over("tools/list", list_tools)
    over("tools/call", call_tool)
    over("prompts/list", list_prompts)
    over("prompts/get", get_prompt)
    over("resources/list", list_resources)
    over("resources/templates/list", list_templates)
    over("resources/read", read_resource)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribed)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, subscribed)
    ours = server.get_tool_input_schema
    server.get_tool_input_schema = lambda name: TOOLS[name][0] if name in TOOLS else ours and ours(name)
