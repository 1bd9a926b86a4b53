"""Models to talk to, on every address: Anthropic's messages, OpenAI's responses (HTTP and
WebSocket) and chat completions, Gemini's streamed content, and what GitHub says of an account.

    models.py PORT CERTIFICATE KEY LOG

What a model answers follows a script. A prompt says RUN: and a command on its line: the
model asks for that command by the tool for commands that the client offers, and when the
result comes back says what it was. A client without tools that asks for edits as text (aider)
gets one, and for a commit message what the commit is called; the output of the project's tests
is its result. Any other prompt is answered at once. Each request is
a line of JSON in LOG: host, method, path, the fields with keys, and the results of tools."""

import base64
import hashlib
import json
import re
import socket
import ssl
import struct
import sys
import threading
import zlib

PORT, CERTIFICATE, KEY, LOG = sys.argv[1:5]
ANSWER = "the-model-answered"
RAN = "the-model-saw-its-tool"
SHELLS = ("Bash", "bash", "exec_command", "shell", "shell_command", "run_shell_command", "local_shell")
KEYS = ("authorization", "x-api-key", "x-goog-api-key", "cookie")
LOCK = threading.Lock()


def texts(value):
    """All texts of a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)


def turns(body):
    return body.get("messages") or body.get("input") or body.get("contents") or []


def tools(body):
    offered = list(body.get("tools") or [])
    for turn in turns(body):
        if isinstance(turn, dict) and turn.get("type") == "additional_tools":
            offered += turn["tools"]
    for tool in offered:
        nested = tool.get("functionDeclarations") or (tool.get("type") == "namespace" and tool.get("tools"))
        for one in nested or [tool.get("function") or tool]:
            yield one


def results(turn):
    """The results of tools in a turn, as text."""
    if not isinstance(turn, dict):
        return
    parts = turn.get("content") if isinstance(turn.get("content"), list) else turn.get("parts") or []
    whole = turn.get("role") == "tool" or str(turn.get("type", "")).endswith("_call_output")
    for part in [turn] if whole else parts:
        if isinstance(part, dict) and (whole or part.get("type") == "tool_result" or "functionResponse" in part):
            yield "\n".join(texts(part))


def written(body):
    """What the model does next for a client that has edits as text; None for any other."""
    asked = "\n".join(texts(body.get("system")))
    if next(iter(tools(body)), None):
        return None
    if "commit message" in asked:
        return ("say", "by-the-agent"), []
    if "*SEARCH/REPLACE block*" not in asked:
        return None
    speakers = [turn.get("role") for turn in turns(body)]
    after = max((at for at, one in enumerate(speakers) if one == "assistant"), default=-1)
    last = "\n".join(texts(turns(body)[after + 1:])) + "\n"
    if "got this output" in last:
        return ("say", RAN), [last]
    if re.search(r"RUN: .+\n", last):
        return ("say", "notes.txt\n```\n<<<<<<< SEARCH\nhello\n=======\nhello\nmore\n>>>>>>> REPLACE\n```\n"), []
    return ("say", ANSWER), []


def wanted(body):
    """What the model does next: ("say", text), ("run", tool, arguments) or ("code", tool, text)."""
    if (step := written(body)) is not None:
        return step
    seen = []
    command = None
    for turn in turns(body):
        found = list(results(turn))
        seen += found
        role = turn.get("role") if isinstance(turn, dict) else None
        if role in (None, "user") and not found:
            for text in texts(turn):
                for line in re.findall(r"RUN: (.+)\n", text):
                    command = line.strip()
    offered = {tool.get("name"): tool for tool in tools(body)}
    shell = next((name for name in SHELLS if name in offered), None)
    is_code = offered.get("exec", {}).get("type") == "custom"
    if command is None or not (shell or is_code):
        return ("say", ANSWER), seen
    if seen:
        return ("say", RAN), seen
    if is_code:
        call = "text(await tools.exec_command({cmd: %s}))" % json.dumps(command)
        return ("code", "exec", call), seen
    schema = offered[shell]
    schema = schema.get("input_schema") or schema.get("parameters") or schema.get("parametersJsonSchema") or {}
    properties = schema.get("properties", {})
    arguments = {"cmd" if "cmd" in properties else "command": command}
    if properties.get("command", {}).get("type") in ("array", "ARRAY"):
        arguments = {"command": ["bash", "-c", command]}
    for name in schema.get("required", []):
        kind = properties.get(name, {}).get("type", "string")
        arguments.setdefault(name, {"boolean": False, "BOOLEAN": False, "number": 1}.get(kind, "run"))
    return ("run", shell, arguments), seen


def sse(events, named):
    out = []
    for event in events:
        if named:
            out.append("event: %s\n" % event["type"])
        out.append("data: %s\n\n" % (event if isinstance(event, str) else json.dumps(event)))
    return "".join(out)


def anthropic(body, step):
    usage = {"input_tokens": 9, "output_tokens": 9}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "m"),
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    if step[0] == "say":
        block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": step[1]}, "end_turn"
        full = {"type": "text", "text": step[1]}
    else:
        full = {"type": "tool_use", "id": "toolu_1", "name": step[1], "input": step[2]}
        block = dict(full, input={})
        delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(step[2])}, "tool_use"
    if not body.get("stream"):
        return "application/json", json.dumps(dict(message, content=[full], stop_reason=stop))
    return "text/event-stream", sse([
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"}], True)


def responses(body, step):
    """The events of OpenAI's responses."""
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": body.get("model", "m"),
            "status": "in_progress", "output": [], "usage": None}
    if step[0] == "say":
        item = {"type": "message", "id": "m_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": step[1], "annotations": []}]}
        middle = [{"type": "response.output_item.added", "output_index": 0, "item": dict(item, content=[])},
                  {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "item_id": "m_1",
                   "part": {"type": "output_text", "text": "", "annotations": []}},
                  {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m_1",
                   "delta": step[1]}]
    elif step[0] == "code":
        item = {"type": "custom_tool_call", "id": "f_1", "call_id": "call_1", "name": step[1], "input": step[2],
                "status": "completed"}
        middle = [{"type": "response.output_item.added", "output_index": 0, "item": dict(item, input="")}]
    else:
        item = {"type": "function_call", "id": "f_1", "call_id": "call_1", "name": step[1],
                "arguments": json.dumps(step[2]), "status": "completed"}
        middle = [{"type": "response.output_item.added", "output_index": 0, "item": dict(item, arguments="")},
                  {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f_1",
                   "delta": item["arguments"]},
                  {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "f_1",
                   "arguments": item["arguments"]}]
    done = dict(base, status="completed", output=[item], usage=usage)
    events = [{"type": "response.created", "response": base}, *middle,
              {"type": "response.output_item.done", "output_index": 0, "item": item},
              {"type": "response.completed", "response": done}]
    return [dict(event, sequence_number=number) for number, event in enumerate(events)], done


def chat(body, step):
    base = {"id": "c_1", "created": 1, "model": body.get("model", "m")}
    if step[0] == "say":
        message, stop = {"role": "assistant", "content": step[1]}, "stop"
    else:
        call = {"index": 0, "id": "call_1", "type": "function",
                "function": {"name": step[1], "arguments": json.dumps(step[2])}}
        message, stop = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return "application/json", json.dumps(dict(base, object="chat.completion", choices=[choice], usage=usage))
    piece = dict(base, object="chat.completion.chunk")
    return "text/event-stream", sse([
        dict(piece, choices=[{"index": 0, "delta": message, "finish_reason": None}]),
        dict(piece, choices=[{"index": 0, "delta": {}, "finish_reason": stop}]),
        dict(piece, choices=[], usage=usage), "[DONE]"], False)


def instance(schema):
    """A value that a schema of JSON describes."""
    kind = str(schema.get("type", "")).lower()
    if schema.get("enum"):
        return schema["enum"][0]
    if kind == "object":
        return {name: instance(one) for name, one in schema.get("properties", {}).items()}
    return {"array": [], "boolean": True, "number": 1, "integer": 1}.get(kind, "text")


def gemini(path, body, step):
    wish = body.get("generationConfig", {})
    schema = wish.get("responseJsonSchema") or wish.get("responseSchema")
    if schema:
        part = {"text": json.dumps(instance(schema))}
    elif step[0] == "say":
        part = {"text": step[1]}
    else:
        part = {"functionCall": {"id": "call_1", "name": step[1], "args": step[2]}}
    whole = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
             "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18},
             "modelVersion": "m", "responseId": "r_1"}
    if "streamGenerateContent" in path:
        return "text/event-stream", sse([whole], False)
    return "application/json", json.dumps(whole)


# What GitHub says of an account that may use its models, and Copilot of its models.
COPILOT = {
    "/copilot_internal/user": {"login": "me", "access_type_sku": "free", "copilot_plan": "individual",
                               "chat_enabled": True, "cli_enabled": True, "is_mcp_enabled": True,
                               "endpoints": {"api": "https://api.individual.githubcopilot.com"}},
    "/user": {"login": "me", "id": 1},
    "/models": {"object": "list", "data": [{
        "id": name, "name": name, "object": "model", "vendor": "v", "version": name, "preview": False,
        "model_picker_enabled": True, "policy": {"state": "enabled", "terms": ""},
        "supported_endpoints": ["/chat/completions"],
        "billing": {"is_premium": False, "multiplier": 0},
        "capabilities": {"family": name, "type": "chat", "object": "model_capabilities", "tokenizer": "o200k_base",
                         "limits": {"max_context_window_tokens": 128000, "max_prompt_tokens": 120000,
                                    "max_output_tokens": 8000},
                         "supports": {"streaming": True, "tool_calls": True, "parallel_tool_calls": True}}}
        for name in ("gpt-4.1", "gpt-5-mini", "claude-sonnet-4.5")]},
}


def answer(host, method, path, body):
    """Kind and text of an answer; None where there is no such page."""
    plain = path.split("?")[0]
    step, _ = wanted(body)
    if method == "POST" and plain.endswith("/messages"):
        return anthropic(body, step)
    if method == "POST" and plain.endswith("/count_tokens"):
        return "application/json", json.dumps({"input_tokens": 9})
    if method == "POST" and plain.endswith("/responses"):
        events, done = responses(body, step)
        if not body.get("stream"):
            return "application/json", json.dumps(done)
        return "text/event-stream", sse(events, True)
    if method == "POST" and plain.endswith("/chat/completions"):
        return chat(body, step)
    if method == "POST" and "enerateContent" in plain:
        return gemini(plain, body, step)
    if plain in COPILOT and host.endswith(("github.com", "githubcopilot.com")):
        return "application/json", json.dumps(COPILOT[plain])
    if plain.endswith("/api/hello") or plain.endswith("/v1/oauth/hello"):
        return "application/json", "{}"
    return None


def note(host, method, path, fields, body):
    line = {"host": host, "method": method, "path": path,
            "keys": {name: fields[name] for name in KEYS if name in fields},
            "tools": sorted(str(tool.get("name")) for tool in tools(body)),
            "results": [found for turn in turns(body) for found in results(turn)] or wanted(body)[1]}
    with LOCK, open(LOG, "a") as log:
        log.write(json.dumps(line) + "\n")


def content(stream, fields):
    if "chunked" in fields.get("transfer-encoding", ""):
        data = b""
        while size := int(stream.readline().split(b";")[0], 16):
            data += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        data = stream.read(int(fields.get("content-length", 0)))
    coding = fields.get("content-encoding", "")
    if coding == "gzip":
        data = zlib.decompress(data, 31)
    try:
        body = json.loads(data) if data else {}
    except ValueError:
        body = {}
    return body if isinstance(body, dict) else {}


def frame(stream):
    """One text of a WebSocket; None at its end."""
    whole = b""
    while True:
        head = stream.read(2)
        if len(head) < 2:
            return None
        final, kind, size = head[0] & 0x80, head[0] & 15, head[1] & 127
        if size == 126:
            size = struct.unpack(">H", stream.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", stream.read(8))[0]
        mask = stream.read(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(stream.read(size)))
        if kind == 8:
            return None
        if kind in (0, 1, 2):
            whole += data
            if final:
                return whole


def converse(stream, host, path, fields):
    """Responses over a WebSocket."""
    accept = hashlib.sha1((fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())
    stream.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Accept: %s\r\n\r\n" % base64.b64encode(accept.digest()).decode()).encode())
    stream.flush()
    earlier = {}
    while (text := frame(stream)) is not None:
        body = json.loads(text)
        if body.get("previous_response_id"):
            body = dict(earlier, **{k: v for k, v in body.items() if k != "input"},
                        input=earlier.get("input", []) + body.get("input", []))
        earlier = body
        note(host, "WS", path, fields, body)
        if body.get("generate") is False:
            step = ("say", "")
        else:
            step, _ = wanted(body)
        for event in responses(body, step)[0]:
            data = json.dumps(event).encode()
            size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data))
            stream.write(b"\x81" + size + data)
        stream.flush()


def serve(connection):
    stream = connection.makefile("rwb")
    while line := stream.readline():
        method, path, _ = line.decode().split(" ", 2)
        fields = {}
        while (line := stream.readline().decode().strip()) != "":
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        host = fields.get("host", "").split(":")[0]
        if fields.get("upgrade", "").lower() == "websocket":
            return converse(stream, host, path, fields)
        body = content(stream, fields)
        note(host, method, path, fields, body)
        found = answer(host, method, path, body)
        status, (kind, text) = ("200 OK", found) if found else ("404 Not Found", ("application/json", '{"error":{"message":"no such page"}}'))
        data = text.encode()
        head = "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (status, kind, len(data))
        stream.write(head.encode() + data)
        stream.flush()


def accept(connection, context):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        serve(connection)
    except (OSError, ValueError, KeyError) as error:
        print(repr(error), file=sys.stderr, flush=True)
    finally:
        connection.close()


def listen(port, context):
    server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)
    while True:
        connection, _ = server.accept()
        threading.Thread(target=accept, args=(connection, context), daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
threading.Thread(target=listen, args=(80, None), daemon=True).start()
listen(int(PORT), context)
