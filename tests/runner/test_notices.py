"""People hear of a question once, by their own command and at their own addresses."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from crew.config.layers.layers import load_settings
from crew.domain.kernel.errors import UsageError
from crew.domain.rows.question import Question
from crew.domain.rows.task import Task
from crew.domain.world import with_rows
from crew.runner.notices import notices
from crew.runner.notices.notices import Notice, Teller
from crew.store.database import StoreFailed
from runner.scene import PATIENCE_S, until

ASKS = [[{"run": "crew signal needs-user-input --question \"Which one?\nThe 'red' one?\""}]]
COMMAND = (
    'printf "%s|%s|%s|%s\\n" "$CREW_EVENT" "$CREW_QUESTION_ID" "$CREW_TASK_ID" "$CREW_MESSAGE"'
)


def _script(*titles):
    return {"tasks": {title: {"steps": ASKS} for title in titles}}


@pytest.fixture
def web():
    """An address to post to, and what came in there; `status` is what it answers."""
    came: list[dict] = []

    class Inbox(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append(
                {"path": self.path, "type": self.headers["Content-Type"], **json.loads(body)}
            )
            self.send_response(server.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self):
            """What a redirect would end in: an answer, and nobody has heard of the question."""
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Inbox)
    server.status, server.came = 200, came
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_command_gets_the_question_in_its_environment_and_is_run_once(make_scene):
    config = f"[notify]\ncommand = {json.dumps(COMMAND + ' >> PLACE/told')}\n"
    scene = make_scene(_script("one"), tasks=["one"], config=config)
    told = scene.path.parent.parent / "told"
    scene.run()
    assert told.read_text() == "asked|q1|1|Which one?\nThe 'red' one?\n"
    scene.run()  # another runner finds the question still open, and told
    assert told.read_text().count("asked|q1") == 1


def test_an_address_gets_a_small_document_about_each_question(make_scene, web):
    config = f'[notify]\nurls = ["{web.url}/hook"]\n'
    scene = make_scene(_script("one", "two"), tasks=["one", "two"], config=config)
    scene.run()
    assert sorted(one["question"] for one in web.came) == ["q1", "q2"]
    first = next(one for one in web.came if one["task"] == "1")
    assert (first["path"], first["type"], first["event"]) == ("/hook", "application/json", "asked")
    assert (first["title"], first["kind"], first["role"]) == ("one", "input", "worker")
    assert first["message"] == "Which one?\nThe 'red' one?"
    assert f'crew answer {first["question"]} "…"' in first["text"]


def test_what_was_asked_before_a_crash_is_told_by_the_next_runner(make_scene, web):
    config = f'[notify]\nurls = ["{web.url}/hook"]\n'
    scene = make_scene(_script("one"), tasks=["one"], config=config)
    scene.run(code=-9, CREW_CRASH_AT="store.first_set.before:2")
    assert [one.id for one in scene.world.questions.values()] == ["q1"]
    assert web.came == []
    scene.run()
    assert [one["question"] for one in web.came] == ["q1"]


def test_a_kind_that_is_not_logged_in_is_reported_once_with_what_to_do(make_scene, web):
    config = f'[notify]\nurls = ["{web.url}/hook"]\n'
    steps = [[{"fail": {"kind": "auth", "message": "wrong key"}}]]
    script = {"tasks": {title: {"steps": steps} for title in ("one", "two")}}
    scene = make_scene(script, tasks=["one", "two"], config=config)
    scene.run()
    (told,) = web.came
    assert (told["event"], told["question"], told["kind"]) == ("paused", "scripted", "outage")
    assert "crew retry scripted" in told["text"]


@pytest.mark.parametrize(("moment", "told"), [("before", 0), ("after", 1)])
def test_a_crash_after_it_was_kept_as_told_never_tells_it_twice(make_scene, web, moment, told):
    config = f'[notify]\nurls = ["{web.url}/hook"]\n'
    scene = make_scene(_script("one"), tasks=["one"], config=config)
    scene.run(code=-9, CREW_CRASH_AT=f"notices.post.{moment}")
    assert len(web.came) == told
    scene.run()
    assert len(web.came) == told


def test_a_question_that_cannot_be_kept_as_told_now_is_told_later(monkeypatch):
    heard, kept = [], dict[str, str]()
    replies: list[Exception | None] = [StoreFailed("locked", hint="wait"), None]

    def first(_db: object, name: str, value: str) -> str:
        if (error := replies.pop(0)) is not None:
            raise error
        return kept.setdefault(name, value)

    class Heard(Teller):
        def _send(self, notice: Notice) -> None:
            heard.append(notice.question.id)

    monkeypatch.setattr(notices, "setting", lambda _db, name: kept.get(name))
    monkeypatch.setattr(notices, "first_setting", first)
    question = Question(id="q1", task="1", run="1.1", role="worker", question="Which?")
    world = with_rows([question, Task(id="1", title="one")])
    teller = Heard(SimpleNamespace(db=None))
    for _ in range(3):
        teller.look(world)
    assert heard == ["q1"]


@pytest.mark.parametrize("status", [500, 302])
def test_an_address_that_fails_changes_nothing_and_its_secret_is_not_logged(
    make_scene, web, status
):
    web.status = status
    config = f'[notify]\nurls = ["{web.url}/secret-word", "http://127.0.0.1:9/secret-word"]\n'
    scene = make_scene(_script("one"), tasks=["one"], config=config)
    assert scene.run() == {"tasks": {"1": "in_progress"}}
    assert len(web.came) == 1
    assert scene.said().count("[notify] urls: 127.0.0.1") == 2
    assert "secret-word" not in scene.said()


def test_a_command_that_fails_is_logged_and_one_that_hangs_ends_with_the_runner(make_scene):
    config = '[notify]\ncommand = "echo $$ > PLACE/pid; sleep 300"\n'
    scene = make_scene(_script("one"), tasks=["one"], config=config, drain=False, farewell_s=0.5)
    running = scene.start()
    pid = scene.path.parent.parent / "pid"
    until(lambda: pid.exists() and pid.read_text(), what="the command runs")
    running.terminate()
    assert running.wait(timeout=PATIENCE_S) == 0
    failing = make_scene(
        _script("one"), tasks=["one"], config='[notify]\ncommand = "echo oh no; exit 3"\n'
    )
    failing.run()
    assert "[notify] command, for question q1: it exited with code 3" in failing.said()
    assert "oh no" in (failing.path / ".crew/logs/notify.log").read_text()


@pytest.mark.parametrize(
    "url",
    ["slack://token", "mailto:ann@example.org", "file:///etc/passwd", "http://", "example.org"],
)
def test_an_address_that_nothing_can_be_posted_to_is_refused_when_it_is_read(tmp_path, url):
    (tmp_path / ".crew.toml").write_text(f'[notify]\nurls = ["https://example.org/x", "{url}"]\n')
    with pytest.raises(UsageError) as refused:
        load_settings(tmp_path, {})
    assert ".crew.toml:2: notify.urls" in refused.value.message
    assert "[notify] command reaches everything else" in refused.value.hint
