"""What the origins answer: as much as each client needs to go on."""
import base64
import hashlib
import json
import os
import re
import subprocess

import packages

JSON = {"Content-Type": "application/json"}
GIT = {}
# Values of the client that is recorded, by name.
HELD = {}


def said(value, status=200, **fields):
    return status, {**JSON, **fields}, json.dumps(value)


def answer(request):
    """The answer to any request."""
    host, path = request.host, request.path
    if "smithy-protocol" in request.fields or host.endswith("amazonaws.com"):
        return aws(request)
    for part, known in HOSTS.items():
        if host == part or host.endswith("." + part):
            return known(request)
    if re.search(r"/(info/(refs|lfs)|git-(upload|receive)-pack)", path):
        return git(request)
    return said({"ok": True, "id": "1"})


def git(request):
    """Smart HTTP by git itself; writing, and what is private, wants credentials."""
    is_shown = "authorization" in request.fields
    if "/info/lfs" in request.path:
        return large(request)
    if "receive-pack" in request.target or "private" in request.path:
        if not is_shown:
            return 401, {"WWW-Authenticate": 'Basic realm="git"'}, b""
    variables = {
        "GIT_PROJECT_ROOT": GIT["root"], "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "me",
        "PATH_INFO": request.path, "QUERY_STRING": request.query, "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": request.fields.get("content-type", ""), "PATH": os.environ["PATH"],
        "CONTENT_LENGTH": str(len(request.body)), "HOME": GIT["root"],
        "HTTP_CONTENT_ENCODING": request.fields.get("content-encoding", ""),
        "GIT_PROTOCOL": request.fields.get("git-protocol", ""),
    }
    done = subprocess.run(["git", "http-backend"], input=request.body, env=variables, capture_output=True)
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
    status = int(fields.pop("Status", "200").split()[0])
    return status, fields, content


def large(request):
    """Objects of Git LFS: asked for here, put elsewhere."""
    if "authorization" not in request.fields:
        return 401, {"LFS-Authenticate": 'Basic realm="git"'}, b"{}"
    if request.path.endswith("/objects/batch"):
        asked = json.loads(request.body)
        objects = []
        for one in asked["objects"]:
            address = f"https://lfs.example.com/store/{one['oid']}"
            upload = {"href": address, "header": {"X-Upload": "1"}, "expires_in": 3600}
            objects.append({**one, "authenticated": True, "actions": {asked["operation"]: upload}})
        return 200, {"Content-Type": "application/vnd.git-lfs+json"}, json.dumps(
            {"transfer": "basic", "objects": objects}
        )
    return said({"ours": [], "theirs": []})


def npm(request):
    if request.method == "GET" and request.path.endswith(".tgz"):
        return 200, {}, packages.npm()
    if request.path == "/-/whoami":
        return said({"username": "me"})
    if request.path.startswith("/-/user/org.couchdb.user"):
        return said({"ok": True, "token": "a-new-one", "id": "org.couchdb.user:me"}, 201)
    if request.path.startswith("/-/v1/login"):
        return said({}, 404)
    if request.method == "GET" and request.path == "/demo-pkg":
        return said(packages.npm_about())
    if request.method == "GET" and "my-app" in request.path:
        return said({"error": "not found"}, 404)
    return said({"ok": True}, 201 if request.method == "PUT" else 200)


def python(request):
    if request.path.startswith("/simple/demo-pkg"):
        if "authorization" not in request.fields:
            return 401, {"WWW-Authenticate": 'Basic realm="packages"'}, b""
        name, content = packages.wheel()
        digest = hashlib.sha256(content).hexdigest()
        page = f'<!DOCTYPE html><html><body><a href="/files/{name}#sha256={digest}">{name}</a></body></html>'
        return 200, {"Content-Type": "text/html"}, page
    if request.path.startswith("/files/"):
        return 200, {}, packages.wheel()[1]
    return 200, {"Content-Type": "text/html"}, "<!DOCTYPE html><html></html>"


def cargo(request):
    if request.path == "/index/config.json":
        if "authorization" not in request.fields:
            return 401, {"WWW-Authenticate": 'Cargo login_url="https://crates.example/me"'}, b""
        return said({"dl": "https://crates.example/dl", "api": "https://crates.example", "auth-required": True})
    if request.path.startswith("/index/"):
        if not request.path.endswith("/demo-crate"):
            return 404, {}, b""
        return 200, {"ETag": '"1"'}, packages.crate_about()
    if request.path.startswith("/dl/"):
        return 200, {}, packages.crate()
    if request.method == "GET":
        return said({"crates": [], "users": [], "meta": {"total": 0}})
    return said({"warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}, "ok": True})


def images(request):
    host = request.host
    if request.path == "/token":
        return said({"token": HELD["BEARER"], "access_token": HELD["BEARER"], "expires_in": 300})
    if not request.fields.get("authorization", "").lower().startswith("bearer") and host == "ghcr.io":
        realm = f'Bearer realm="https://{host}/token",service="{host}",scope="repository:me/app:pull"'
        return 401, {"WWW-Authenticate": realm, **JSON}, '{"errors":[]}'
    if "authorization" not in request.fields:
        return 401, {"WWW-Authenticate": 'Basic realm="images"', **JSON}, '{"errors":[]}'
    if request.path == "/v2/":
        return said({})
    if request.path.endswith("/tags/list"):
        return said({"name": "me/app", "tags": ["v1"]})
    upload = f"https://{host}/v2/me/app/blobs/uploads/7d1c?state=a"
    if request.method == "POST":
        return 202, {"Location": upload, "Docker-Upload-UUID": "7d1c", "Range": "0-0"}, b""
    if request.method == "PATCH":
        return 202, {"Location": upload, "Range": f"0-{len(request.body) - 1}"}, b""
    if request.method == "PUT":
        digest = "sha256:" + hashlib.sha256(request.body).hexdigest()
        return 201, {"Location": f"https://{host}/v2/me/app/x", "Docker-Content-Digest": digest}, b""
    return 404, JSON, '{"errors":[{"code":"BLOB_UNKNOWN"}]}'


def github(request):
    path = request.path
    if re.search(r"/(info/(refs|lfs)|git-(upload|receive)-pack)", path):
        return git(request)
    if path == "/graphql":
        owner = {"id": "U_1", "login": "me"}
        labels = {"nodes": [], "totalCount": 0, "pageInfo": {"hasNextPage": False}}
        repository = {
            "id": "R_1", "name": "app", "owner": owner, "hasIssuesEnabled": True, "description": "d",
            "viewerPermission": "ADMIN", "defaultBranchRef": {"name": "main"}, "mergeCommitAllowed": True,
            "isPrivate": False, "labels": labels, "milestones": labels, "assignableUsers": labels,
            "issues": labels, "pullRequests": labels, "projects": labels, "parent": None,
            "issue": {"id": "I_1", "number": 1, "url": "https://github.com/me/app/issues/1", "title": "t"},
        }
        made = {"issue": {"url": "https://github.com/me/app/issues/1", "id": "I_1"}}
        data = {"viewer": owner, "repository": repository, "createIssue": made, "addComment": {
            "commentEdge": {"node": {"url": "https://github.com/me/app/issues/1#c"}}}}
        return said({"data": data})
    if "/releases/tags/" in path:
        return said({"message": "Not Found"}, 404)
    if path.endswith("/releases"):
        return said({"id": 7, "html_url": "https://github.com/me/app/releases/v1",
                     "url": "https://api.github.com/repos/me/app/releases/7",
                     "upload_url": "https://uploads.github.com/repos/me/app/releases/7/assets{?name,label}"}, 201)
    if path == "/gists":
        return said({"id": "a1", "html_url": "https://gist.github.com/a1", "files": {}}, 201)
    if path.endswith("/actions/secrets/public-key"):
        return said({"key_id": "1", "key": base64.b64encode(bytes(range(1, 33))).decode()})
    return said({"login": "me", "id": 1, "name": "app", "full_name": "me/app", "state": "uploaded"},
                201 if request.method == "POST" else 200)


def aws(request):
    if request.host.startswith("sts."):
        answer = ("<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/me"
                  "</Arn><UserId>AIDA</UserId><Account>123456789012</Account></GetCallerIdentityResult>"
                  "</GetCallerIdentityResponse>")
        return 200, {"Content-Type": "text/xml"}, answer
    if ".s3." in request.host or request.host.startswith("s3."):
        if request.method == "PUT":
            etag = '"' + hashlib.md5(request.body).hexdigest() + '"'
            return 200, {"ETag": etag}, b""
        if request.method == "POST" and "uploads" in request.query:
            return 200, {}, ("<InitiateMultipartUploadResult><Bucket>my-bucket</Bucket><Key>big</Key>"
                             "<UploadId>u1</UploadId></InitiateMultipartUploadResult>")
        if request.method == "POST":
            return 200, {}, "<CompleteMultipartUploadResult><ETag>a</ETag></CompleteMultipartUploadResult>"
        if "list-type" in request.query:
            return 200, {}, ("<ListBucketResult><Name>my-bucket</Name><KeyCount>0</KeyCount>"
                             "<IsTruncated>false</IsTruncated></ListBucketResult>")
        return 200, {"ETag": '"a"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, b"content"
    return 200, {"Content-Type": "application/x-amz-json-1.1"}, "{}"


def google(request):
    if request.path.endswith("/token"):
        return said({"access_token": HELD["ACCESS"], "expires_in": 3599, "token_type": "Bearer"})
    if "streamGenerateContent" in request.path:
        part = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Done."}]},
                                "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
        return 200, {"Content-Type": "text/event-stream"}, f"data: {json.dumps(part)}\r\n\r\n"
    if "generateContent" in request.path:
        chosen = {"reasoning": "x", "model_choice": "flash", "next_speaker": "user",
                  "complexity_score": 1, "complexity_reasoning": "x"}
        return said({"candidates": [{"content": {"role": "model", "parts": [{"text": json.dumps(chosen)}]},
                                     "finishReason": "STOP"}]})
    return said({})


PAGE = """<!DOCTYPE html><form id=f method=post action=/session><input name=csrf value=a1b2c3d4e5f6>
<input name=login value=me><input name=password type=password value="PASSWORD"></form><script>(async () => {
const text = new File(["some text\\n"], "a.txt", {type: "text/plain"});
const data = new FormData(); data.append("comment", "hello"); data.append("file", text);
const json = {"Content-Type": "application/json", "X-CSRF-Token": "a1b2c3d4e5f6"};
await fetch("/api/login", {method: "POST", headers: json, body: JSON.stringify({username: "me", password: "PASSWORD"})});
await fetch("/upload", {method: "POST", body: data});
await fetch("/api/search?q=two+words&page=2");
await fetch("/api/comment", {method: "POST", headers: json, body: JSON.stringify({text: "a comment", tags: ["a", "b"]})});
document.getElementById("f").submit();
})()</script>"""


def page(request):
    cookie = f"session={HELD['SESSION']}; Path=/; Secure; HttpOnly"
    text = PAGE.replace("PASSWORD", HELD["PASSWORD"]) if request.path == "/login" else "<!DOCTYPE html>Hello"
    return 200, {"Content-Type": "text/html", "Set-Cookie": cookie}, text


def modules(request):
    """One module of Go."""
    if "authorization" not in request.fields:
        return 401, {}, b"who are you"
    name = request.path.rsplit("/", 1)[-1]
    if name == "list":
        return 200, {}, "v1.0.0\n"
    if name.endswith(".mod"):
        return 200, {}, "module example.com/demo\n"
    if name.endswith(".zip"):
        return 200, {}, packages.module()
    return said({"Version": "v1.0.0", "Time": "2024-01-05T00:00:00Z"})


def models(request):
    path = request.path
    if path == "/api/whoami-v2":
        return said({"name": "me", "type": "user", "auth": {"accessToken": {"role": "write"}}})
    if "/preupload/" in path:
        return said({"files": [{"path": "a.txt", "uploadMode": "regular", "shouldIgnore": False}]})
    if "/commit/" in path:
        return said({"commitUrl": "https://huggingface.co/me/m/commit/1", "commitOid": "1" * 40, "success": True})
    return said({"id": "me/m", "url": "https://huggingface.co/me/m", "sha": "1" * 40, "siblings": []})


def nothing(request):
    return 404, {}, b""


def events(pairs):
    text = "".join(
        (f"event: {name}\n" if name else "") + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
        for name, data in pairs
    )
    return 200, {"Content-Type": "text/event-stream"}, text


def anthropic(request):
    if not request.path.endswith("/v1/messages"):
        return said({"input_tokens": 10, "id": "file_1", "data": [], "type": "x"})
    asked = json.loads(request.content())
    text = json.dumps(asked)
    # An agent with tools uses one, once.
    uses = any(tool.get("name") == "Bash" for tool in asked.get("tools", [])) and "tool_result" not in text
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash",
             "input": {"command": "git status", "description": "Look"}} if uses else {"type": "text", "text": "Done."}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model"),
               "content": [], "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": 10, "output_tokens": 1}}
    stop = "tool_use" if uses else "end_turn"
    if not asked.get("stream"):
        return said({**message, "content": [block], "stop_reason": stop})
    if uses:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}
    return events([
        ("message_start", {"type": "message_start", "message": message}),
        ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": start}),
        ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        ("message_delta", {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                           "usage": {"output_tokens": 5}}),
        ("message_stop", {"type": "message_stop"}),
    ])


def openai(request):
    path = request.path
    if path.endswith("/responses"):
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
        usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}
        whole = {"id": "r1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
                 "output": [item], "usage": usage}
        if not json.loads(request.content()).get("stream"):
            return said(whole)
        return events([
            ("response.created", {"type": "response.created", "response": {**whole, "status": "in_progress"}}),
            ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}),
            ("response.completed", {"type": "response.completed", "response": whole}),
        ])
    if path.endswith("/chat/completions"):
        choice = {"index": 0, "finish_reason": "stop"}
        whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m"}
        if json.loads(request.content()).get("stream"):
            part = {**whole, "object": "chat.completion.chunk", "choices": [{**choice, "delta": {"content": "Done."}}]}
            return events([(None, part), (None, "[DONE]")])
        message = {"role": "assistant", "content": "Done."}
        return said({**whole, "choices": [{**choice, "message": message}]})
    if path.endswith("/embeddings"):
        return said({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}],
                     "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})
    if path.endswith("/models"):
        return said({"object": "list", "data": []})
    return said({"id": "file-1", "object": "file", "bytes": 1, "created_at": 1, "filename": "a",
                 "purpose": "x", "text": "Hello"})


HOSTS = {
    "npm.example": npm, "python.example": python, "crates.example": cargo, "ghcr.io": images,
    "images.example": images, "github.com": github, "googleapis.com": google, "anthropic.com": anthropic,
    "claude.ai": anthropic, "claude.com": anthropic, "openai.com": openai, "gitlab.com": git, "git.example.com": git,
    "goproxy.example": modules, "huggingface.co": models, "www.example.com": page, "githubusercontent.com": nothing, "models.dev": nothing,
}
