"""Whoever is not a step of this crew gets nothing from its MCP server, on any route."""

import contextlib
import http.client
import json
import os
import socket

import pytest

from crew.domain.kernel.errors import NeedsLogin
from crew.front.mcp.token_guard import Guard
from crew.front.mcp.tool_list import LONGEST_CALL
from front.conftest import AGENT, PATIENCE_S, CliScene, lonely
from front.conftest import CONFIG as SHELL_CONFIG
from front.mcp_scene import WAYS, running_crew, waiting_step

ROUTES = (
    *("/mcp", "/mcp/", "/", "/sse", "/messages/", "/docs", "/mcp?token=x", "//mcp", "/%6dcp"),
    *("/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"),
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "FOO")
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

__all__ = ["lonely"]


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """One step for the whole file: whatever is refused must have left it as it was."""
    with _waiting(tmp_path_factory.mktemp("attacked")) as step:
        yield step


@contextlib.contextmanager
def _waiting(folder):
    with pytest.MonkeyPatch.context() as patch:
        _alone(patch, folder)
        scene = _scene(folder)
        with running_crew(scene) as runner:
            step = waiting_step(scene)
            yield step
            assert runner.poll() is None
            assert step.signals() == []
            assert not step.by_http("get-task").refused


def _alone(patch, folder):
    for name in [name for name in os.environ if name.startswith(("GIT_", "CREW_"))]:
        patch.delenv(name)
    (folder / "home").mkdir()
    (folder / "home" / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = a@example.org\n")
    patch.setenv("HOME", str(folder / "home"))
    patch.setenv("CREW_SANDBOX_ALLOW_WRITE", str(folder))


def _scene(folder) -> CliScene:
    scene = CliScene(folder / "my repo", folder / "scene")
    scene.root.mkdir()
    scene.folder.mkdir()
    scene.git("init", "-q", "-b", "main")
    scene.git("commit", "-q", "--allow-empty", "-m", "first")
    scene.ok("init")
    agent = scene.folder / "agent.sh"
    agent.write_text(AGENT)
    config = SHELL_CONFIG.format(agent=agent, scene=scene.folder)
    (scene.root / ".crew" / "config.toml").write_text(config)
    return scene


@pytest.fixture
def port(step):
    return _port_of(step)


def _port_of(step):
    return int(step.url.split(":")[2].partition("/")[0])


def send(port, method="POST", path="/mcp", *, headers=None, body=PING):
    """One request with exactly these headers; status, headers and body of the answer."""
    given = dict(headers or {})
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    ) as line:
        line.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
        for name, value in given.items():
            line.putheader(name, value)
        content = body if isinstance(body, bytes) else body.encode()
        line.putheader("Content-Length", str(len(content)))
        with contextlib.suppress(ConnectionError):  # it may answer and close before it has it all
            line.endheaders(content)
        answer = line.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


def raw(port, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as line:
        line.sendall(text)
        return b"".join(iter(lambda: line.recv(65536), b""))


def bearer(token):
    return {"Authorization": f"Bearer {token}", **JSON}


def test_a_step_that_proves_itself_is_served(step, port):
    for host in ("127.0.0.1", "localhost"):
        for more in ({}, {"Origin": f"http://127.0.0.1:{port}"}):
            named = {"Host": f"{host}:{port}", **bearer(step.token), **more}
            status, headers, body = send(port, headers=named)
            assert (status, json.loads(body)["result"]) == (200, {})
            assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize("path", ROUTES)
def test_no_route_and_no_method_answers_without_a_token(port, path):
    for method in METHODS:
        status, headers, body = send(port, method, path, headers=JSON)
        assert status == 401, (method, path)
        assert headers["www-authenticate"] == "Bearer"
        assert b"jsonrpc" not in body


@pytest.mark.parametrize("path", ROUTES)
def test_no_route_answers_to_another_name_whatever_the_token(step, port, path):
    for method in ("GET", "POST", "OPTIONS"):
        for token in (step.token, "wrong"):
            named = {**bearer(token), "Host": f"evil.test:{port}"}
            status, headers, body = send(port, method, path, headers=named)
            assert status == 421
            assert b"evil" not in body
            assert "www-authenticate" not in headers


@pytest.mark.parametrize("path", ROUTES)
def test_no_route_answers_to_a_page_of_another_origin(step, port, path):
    for method in ("GET", "POST", "OPTIONS"):
        named = {**bearer(step.token), "Origin": "http://evil.test"}
        status, headers, body = send(port, method, path, headers=named)
        assert status == 403
        assert not any(name.startswith("access-control") for name in headers)
        assert b"jsonrpc" not in body


@pytest.mark.parametrize(
    "host",
    [
        *("evil.test", "evil.test:{port}", "127.0.0.1", "localhost", "127.0.0.1:1", ""),
        *("127.0.0.1:{port}.evil.test", "localhost.evil.test:{port}", "[::1]:{port}"),
        *("127.0.0.1:{port}@evil.test", "evil.test@127.0.0.1:{port}", "127.1:{port}"),
        *("LOCALHOST:{port}", "localhost.:{port}", "0.0.0.0:{port}", "127.0.0.1:0{port}"),
        *("127.0.0.1:{port}, evil.test", "2130706433:{port}", "*"),
    ],
)
def test_only_the_exact_name_and_port_are_its_own(step, port, host):
    named = {**bearer(step.token), "Host": host.format(port=port)}
    status, _, body = send(port, headers=named)
    assert status in {400, 421}
    assert b'"result"' not in body


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "http://evil.test", "http://evil.test:{port}", "https://127.0.0.1:{port}", ""),
        *("http://127.0.0.1", "http://127.0.0.1:1", "http://127.0.0.1:{port}.evil.test"),
        *("http://127.0.0.1:{port}/", "HTTP://127.0.0.1:{port}", "http://[::1]:{port}"),
        *("file://", "http://localhost:{port}@evil.test", "http://localhost:{port} "),
    ],
)
def test_only_its_own_origin_may_ask(step, port, origin):
    named = {**bearer(step.token), "Origin": origin.format(port=port)}
    status, _, _ = send(port, headers=named)
    stripped_is_own = origin.format(port=port).strip() == f"http://localhost:{port}"
    assert status == (200 if stripped_is_own else 403)


def test_a_rebound_page_gets_nothing_even_with_a_token(step, port):
    """As its browser would ask: the page's own name in Host, and no or the same Origin."""
    for more in ({}, {"Origin": f"http://evil.test:{port}", "Sec-Fetch-Site": "same-origin"}):
        named = {**bearer(step.token), "Host": f"evil.test:{port}", **more}
        assert send(port, headers=named)[0] == 421
        assert send(port, "GET", headers=named)[0] == 421


@pytest.mark.parametrize("token", ["", "x", "/", "//", "1.1/1/", "a/b/c", "1.1/1/" + "0" * 64])
def test_a_token_that_crew_did_not_make_opens_nothing(port, token):
    assert send(port, headers=bearer(token))[0] == 401


def test_a_token_that_was_changed_opens_nothing(step, port):
    run, attempt, proof = step.token.rsplit("/", 2)
    changed = [
        f"{run}0/{attempt}/{proof}",
        f"{run}/{int(attempt) + 1}/{proof}",
        f"{run}/{attempt}/{proof[:-1]}",
        f"{run}/{attempt}/{proof.upper()}",
        f"{run}/{attempt}/{proof}é",
        f"{step.token}/{proof}",
        step.token * 50,
    ]
    for token in changed:
        status, _, body = send(port, headers=bearer(token))
        assert status == 401
        assert proof.encode() not in body
    for scheme in ("Basic", "Token", "Bearer:", ""):
        named = {**JSON, "Authorization": f"{scheme} {step.token}"}
        assert send(port, headers=named)[0] == 401


def test_with_a_token_there_is_one_route_and_one_method(step, port):
    for method in METHODS:
        status, headers, _ = send(port, method, headers=bearer(step.token))
        assert status == (200 if method == "POST" else 405)
        if method != "POST":
            assert headers["allow"] == "POST"
    others = [path for path in ROUTES if path not in {"/mcp", "/mcp?token=x", "/%6dcp"}]
    for path in others:
        assert send(port, path=path, headers=bearer(step.token))[0] == 404


def test_two_of_a_header_are_none(step, port):
    own = f"Host: 127.0.0.1:{port}\r\n"
    token = f"Authorization: Bearer {step.token}\r\n"
    json_lines = "Content-Type: application/json\r\nAccept: application/json\r\n"
    body = f"Content-Length: {len(PING)}\r\nConnection: close\r\n\r\n{PING}"
    for start, codes in (
        (f"POST /mcp HTTP/1.1\r\n{own}Host: evil.test\r\n{token}", (b"400", b"421")),
        (f"POST /mcp HTTP/1.1\r\n{token}", (b"400", b"421")),
        (f"POST /mcp HTTP/1.0\r\n{token}", (b"400", b"421")),
        (f"POST /mcp HTTP/1.1\r\n{own}{token}Authorization: Bearer x\r\n", (b"401",)),
        (f"POST /mcp HTTP/1.1\r\n{own}{token}Origin: http://evil.test\r\nOrigin: x\r\n", (b"403",)),
        (f"POST http://evil.test/mcp HTTP/1.1\r\n{own}{token}", (b"404",)),
        (f"CONNECT evil.test:80 HTTP/1.1\r\n{own}{token}", (b"404", b"405")),
    ):
        answer = raw(port, f"{start}{json_lines}{body}".encode())
        assert answer.split()[1] in codes, (start, answer)
        assert b'"result"' not in answer


def test_no_socket_of_a_page_is_opened(step, port):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert send(port, "GET", headers={**upgrade, **key}, body="")[0] == 401
    named = {**upgrade, **key, "Authorization": f"Bearer {step.token}"}
    assert send(port, "GET", headers=named, body="")[0] == 405


def test_what_a_form_can_send_is_not_taken(step, port):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        named = {**bearer(step.token), "Content-Type": kind}
        assert send(port, headers=named)[0] in {400, 415}


@pytest.mark.parametrize("body", ["hello", "", "[]", "7", "{", "[" * 50_000, '{"jsonrpc": "2.0"}'])
def test_what_is_not_a_message_is_refused(step, port, body):
    status, _, answer = send(port, headers=bearer(step.token), body=body)
    assert status == 400
    assert b'"result"' not in answer


def test_a_huge_body_is_refused_before_it_is_read(step, port):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "x": "y" * LONGEST_CALL})
    assert send(port, headers=bearer(step.token), body=body)[0] == 413


def test_refusals_are_logged_without_the_token(tmp_path):
    """In a log of its own: of many refusals of one kind, crew logs the first ones."""
    with _waiting(tmp_path) as step:
        send(_port_of(step), headers={**bearer(step.token), "Host": "evil.test"})
        send(_port_of(step), headers=bearer("wrong-token-here"))
        log = step.log()
    assert "refused POST '/mcp': this server is not known by that name" in log
    assert "refused POST '/mcp': this token is not one of crew's" in log
    assert step.token not in log
    assert "wrong-token-here" not in log


@pytest.mark.parametrize("way", WAYS)
def test_a_signal_with_a_wrong_token_is_refused(step, way):
    run, attempt, proof = step.token.rsplit("/", 2)
    for token in (f"{run}9/{attempt}/{proof}", "nonsense"):
        if way == "by_http":
            with pytest.raises(Exception, match=r"401|Unauthorized|not one of crew|unhandled"):
                step.by_http("signal-back", token=token, signal="complete", summary="x")
            continue
        heard = getattr(step, way)("signal-back", token=token, signal="complete", summary="x")
        assert heard.refused
        assert "this token is not one of crew's" in heard.text
        assert "use the CREW_TOKEN of your own environment, unchanged" in heard.text
    assert step.signals() == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"signal": "complete"}, "the signal complete needs summary"),
        ({"signal": "complete", "summary": " \n "}, "the signal complete needs summary"),
        ({"signal": "partially-complete", "progress": "x"}, "needs continuationPoint"),
        ({"signal": "needs-user-input", "context": "x"}, "needs question"),
        ({"signal": "complete", "summary": "x" * 20_001}, "summary has 20,001 characters"),
        ({"signal": "complete", "summary": "x" * 120_000}, "send it again, shorter"),
    ],
)
def test_a_signal_that_lacks_something_or_is_huge_is_refused_with_what_to_do(
    step, way, given, words
):
    heard = getattr(step, way)("signal-back", **given)
    assert heard.refused
    assert words in heard.text
    assert "hint" in heard.text
    assert step.signals() == []
    assert "refused signal: " in step.log()


@pytest.mark.parametrize("way", ["by_http", "by_stdio"])
def test_no_argument_makes_a_signal_somebody_elses(step, way):
    for more in ({"run": "2.1"}, {"attempt": "9"}, {"agent": "B"}):
        heard = getattr(step, way)("signal-back", signal="complete", summary="x", **more)
        assert heard.refused
        assert "signal-back takes no" in heard.text
    assert step.signals() == []


@pytest.mark.parametrize("way", ["by_http", "by_stdio"])
def test_what_no_terminal_could_show_is_left_out(step, way):
    sent = getattr(step, way)(
        "post-message", task="1", text="\x00\x1b]0;owned\x07quiet\x1b[2J work"
    )
    assert not sent.refused
    (message,) = json.loads(getattr(step, way)("read-messages").text)
    assert message["text"] == "quiet work"


def test_half_a_character_does_no_harm(step, port):
    call = {"name": "post-message", "arguments": {"task": "1", "text": "half \\ud83d \\u0000 end"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    message = message.replace("\\\\u", "\\u")
    status, _, _ = send(port, headers=bearer(step.token), body=message)
    assert status in {200, 400}
    answers = step.raw(f"{message}\n{PING}\n".encode())
    assert [answer["id"] for answer in answers] == [1, 1]
    read = step.by_http("read-messages")
    assert not read.refused
    assert "\x00" not in read.text


class _Denied:
    """Stands for the server behind the guard."""

    reached = False

    async def __call__(self, scope, receive, send):
        self.reached = True


def test_the_guard_lets_nothing_through_that_is_not_http():
    import asyncio  # noqa: PLC0415

    def prove(_token):
        raise NeedsLogin("no", hint="no")

    app = _Denied()
    guard = Guard(app=app, port=1, prove=prove)
    asyncio.run(guard({"type": "websocket"}, None, None))
    asyncio.run(guard({"type": "lifespan"}, None, None))
    assert not app.reached
