"""What Ray's dashboard answers, and what that means: silence is no news, a refusal is one."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from mosaic.dispatch.launcher import Stage
from mosaic.dispatch.ray_launcher import _sight
from mosaic.engines.cluster import Cluster, load_cluster
from mosaic.engines.ray import Ray, RayJob, RayJobSpec, RayRefused, RaySilent
from mosaic.model.errors import BadConfig
from mosaic.model.rundir import StateRoot

SPEC = RayJobSpec("mosaic-A-1", "exec true", "gcs://a.zip", {"A": "b"}, gpus=1, memory_mb=2, resource="a100")


@pytest.fixture
def dashboard():
    """Answers every request with `reply`, and keeps what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.asked.append((self.command, self.path, dict(self.headers), body))
            status, text = server.reply
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.reply = [], (200, "{}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def ray(dashboard):
    return Ray(Cluster("ray", engine="ray", address=f"http://127.0.0.1:{dashboard.server_port}/"))


def test_what_is_requested_of_ray(ray, dashboard):
    ray.submit(SPEC)

    method, path, _, body = dashboard.asked[0]
    assert (method, path) == ("POST", "/api/jobs/")
    sent = json.loads(body)
    assert (sent["submission_id"], sent["entrypoint_num_gpus"], sent["entrypoint_memory"]) == ("mosaic-A-1", 1, 2 << 20)
    assert sent["runtime_env"] == {"working_dir": "gcs://a.zip", "env_vars": {"A": "b"}}
    assert list(sent["entrypoint_resources"]) == ["a100"]


def test_a_job_that_exists_is_the_same_job(ray, dashboard):
    dashboard.reply = 500, "Traceback …\nValueError: Job with submission_id mosaic-A-1 already exists. Please …\n.\n"

    ray.submit(SPEC)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ((500, "Traceback …\nRpcError: GCS is not there"), RaySilent),
        ((503, ""), RaySilent),
        ((200, "<html>"), RaySilent),
        ((200, '{"a": 1}'), RaySilent),
        ((401, ""), RayRefused),
        ((400, "ValueError: nonsense"), RayRefused),
    ],
)
def test_silence_and_refusal_are_told_apart(ray, dashboard, reply, kind):
    dashboard.reply = reply

    with pytest.raises(kind):
        ray.jobs()


def test_an_address_without_a_dashboard_is_silent():
    with pytest.raises(RaySilent, match="does not answer"):
        Ray(Cluster("ray", engine="ray", address="http://127.0.0.1:1")).jobs()


def test_token_and_headers_are_sent(ray, dashboard, tmp_path):
    token = tmp_path / "token"
    token.write_text("abc\n")
    ray.cluster = Cluster(
        "ray", engine="ray", address=ray.cluster.address, token_file=str(token), headers=("X-Lab: me",)
    )

    ray.version()

    assert dashboard.asked[0][2]["Authorization"] == "Bearer abc"
    assert dashboard.asked[0][2]["X-Lab"] == "me"


@pytest.mark.parametrize(
    ("job", "stage", "words", "retry"),
    [
        (RayJob("j", "PENDING", "It may be waiting for resources"), Stage.QUEUED, "Ray: CPUs", None),
        (RayJob("j", "RUNNING"), Stage.RUNNING, "", None),
        (RayJob("j", "SUCCEEDED", exit_code=0), Stage.ENDED, "", None),
        (RayJob("j", "STOPPED"), Stage.ENDED, "cancelled outside MOSAIC", None),
        (RayJob("j", "FAILED", "exit code -9", exit_code=-9), Stage.ENDED, "", False),
        (RayJob("j", "FAILED", "failed\nno grpc", exit_code=4), Stage.ENDED, "exit code 4 (job j): no grpc", False),
        (RayJob("j", "FAILED", "died", "JOB_SUPERVISOR_ACTOR_DIED"), Stage.LOST, "node failed: Ray lost", None),
        (RayJob("j", "FAILED", "900 s", "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"), Stage.ENDED, "no place", True),
        (RayJob("j", "FAILED", "env", "RUNTIME_ENV_SETUP_FAILURE"), Stage.ENDED, "Ray ended its job: env", None),
        (RayJob("j", "SOMETHING_NEW"), Stage.RUNNING, "", None),
    ],
)
def test_rays_words_as_stages(job, stage, words, retry):
    sight = _sight(job)

    assert (sight.stage, sight.retry) == (stage, retry)
    assert words in sight.reason


def test_ray_needs_no_file(tmp_path):
    cluster = load_cluster(StateRoot(tmp_path), "ray")

    assert (cluster.engine, cluster.address) == ("ray", "http://127.0.0.1:8265")


@pytest.mark.parametrize(
    ("line", "words"),
    [('root = "x"', "'x': write an absolute path"), ('environments = "x"', "'x' is not known. Write same or node")],
)
def test_settings_of_nodes_are_checked(tmp_path, line, words):
    root = StateRoot(tmp_path)
    root.clusters.mkdir()
    (root.clusters / "ray.toml").write_text(line)

    with pytest.raises(BadConfig, match=words):
        load_cluster(root, "ray")
