"""The Jobs API of one Ray cluster, over HTTP: submit, list, stop, delete, and the nodes. Ray itself is not imported."""

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from mosaic.engines.cluster import Cluster
from mosaic.engines.errors import EngineRefused, EngineSilent
from mosaic.model.durable import read_bytes

ANSWERS_WITHIN_S = 20.0
LARGEST_ANSWER = 256 << 20
LARGEST_TOKEN = 64 << 10
OLDEST = (2, 9)  # older versions have no entrypoint_memory
# Without proxies: a dashboard is in the same network, and its token is not for others.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_USED = re.compile(r"^([\d.]+)/([\d.]+) (CPU|GPU)$", re.MULTILINE)


class RaySilent(EngineSilent):
    """Ray's dashboard does not answer now."""


class RayRefused(EngineRefused):
    """Ray has answered that it will not do it."""


@dataclass(frozen=True)
class RayJob:
    """One entry of the list of jobs."""

    name: str  # its submission id
    status: str  # PENDING, RUNNING, STOPPED, SUCCEEDED, FAILED
    message: str = ""
    error_type: str = ""
    node: str = ""  # the address of its node; empty before it has one
    exit_code: int | None = None

    @property
    def id(self) -> str:
        return self.name


@dataclass(frozen=True)
class RayJobSpec:
    name: str
    entrypoint: str
    package: str  # the URI of the folder that it starts in
    variables: Mapping[str, str]
    about: Mapping[str, str] = field(default_factory=dict)
    cpus: float = 1.0
    gpus: int = 0
    memory_mb: int = 0
    resource: str = ""  # a custom resource that its node must have


@dataclass(frozen=True)
class RayNode:
    name: str
    state: str
    cpus: float
    cpus_used: float
    gpus: int
    gpus_used: float
    memory_mb: int
    address: str = ""
    resources: frozenset[str] = frozenset()  # as the dashboard spells them

    def has(self, resource: str) -> bool:
        return _in_camel_case(resource) in self.resources


class Ray:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def submit(self, spec: RayJobSpec) -> None:
        """Hand over a job. A name that Ray knows already is the same job, which is not started again."""
        body: dict[str, Any] = {
            "submission_id": spec.name,
            "entrypoint": spec.entrypoint,
            "metadata": dict(spec.about),
            "runtime_env": {"working_dir": spec.package, "env_vars": dict(spec.variables)},
            "entrypoint_num_cpus": spec.cpus,
        }
        body |= {"entrypoint_num_gpus": spec.gpus} if spec.gpus else {}
        body |= {"entrypoint_memory": spec.memory_mb << 20} if spec.memory_mb else {}
        # As little of it as Ray can count: it chooses the node, and is not used up.
        body |= {"entrypoint_resources": {spec.resource: 0.0001}} if spec.resource else {}
        try:
            self._ask("POST", "/api/jobs/", json.dumps(body).encode())
        except RayRefused as error:
            if "already exists" not in str(error):
                raise

    def jobs(self) -> list[RayJob]:
        """All jobs that Ray knows, of all users, those that have ended included."""
        found = self._ask_json("GET", "/api/jobs/")
        if not isinstance(found, list):
            raise RaySilent(f"{self.cluster.address} sent something that is not a list of jobs.")
        return [_job(one) for one in found if isinstance(one, dict) and one.get("submission_id")]

    def stop(self, name: str) -> None:
        """SIGTERM to its processes; SIGKILL after the RAY_JOB_STOP_WAIT_TIME_S that it was submitted with."""
        self._ask("POST", f"/api/jobs/{quote(name)}/stop")

    def delete(self, name: str) -> None:
        """Remove a job that has ended from Ray's list."""
        self._ask("DELETE", f"/api/jobs/{quote(name)}")

    def log(self, name: str) -> str:
        found = self._ask_json("GET", f"/api/jobs/{quote(name)}/logs")
        return str(found.get("logs") or "") if isinstance(found, dict) else ""

    def ensure_package(self, name: str, content: bytes) -> str:
        """Upload a zip file under this name, unless Ray has it. Returns its URI."""
        path = f"/api/packages/gcs/{name}"
        try:
            self._ask("GET", path)
        except RayRefused:
            self._ask("PUT", path, content)
        return f"gcs://{name}"

    def version(self) -> str:
        found = self._ask_json("GET", "/api/version")
        return str(found.get("ray_version") or "") if isinstance(found, dict) else ""

    def nodes(self) -> list[RayNode]:
        data = (self._ask_json("GET", "/nodes?view=summary") or {}).get("data") or {}
        used = data.get("nodeLogicalResources") or {}
        return [_node(one, used) for one in data.get("summary") or []]

    def _ask_json(self, method: str, path: str) -> Any:
        try:
            return json.loads(self._ask(method, path))
        except ValueError as error:
            raise RaySilent(f"{self.cluster.address} sent something that is not JSON ({error}).") from None

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        address = self.cluster.address.rstrip("/")
        request = urllib.request.Request(f"{address}{path}", body, self._headers(body), method=method)
        try:
            with _OPENER.open(request, timeout=ANSWERS_WITHIN_S) as reply:
                answer: bytes = reply.read(LARGEST_ANSWER)
                return answer
        except urllib.error.HTTPError as error:
            raise _failure(address, error) from None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", "") or error
            raise RaySilent(f"The dashboard of Ray at {address} does not answer: {reason}") from None

    def _headers(self, body: bytes | None) -> dict[str, str]:
        headers = dict(line.split(":", 1) for line in self.cluster.headers if ":" in line)
        headers = {name.strip(): value.strip() for name, value in headers.items()}
        if body is not None:
            headers["Content-Type"] = "application/json" if body[:1] == b"{" else "application/octet-stream"
        if self.cluster.token_file:
            try:
                token = read_bytes(os.path.expanduser(self.cluster.token_file), LARGEST_TOKEN).decode().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise RayRefused(f"The token of the cluster '{self.cluster.name}' cannot be read: {error}") from None
            headers["Authorization"] = f"Bearer {token}"
        return headers


def _failure(address: str, error: urllib.error.HTTPError) -> EngineSilent | EngineRefused:
    words = _last_line(error.read(1 << 20).decode(errors="replace"))
    if error.code in (401, 403):
        advice = "Set token_file to the file with its token, such as ~/.ray/auth_token."
        return RayRefused(f"The dashboard of Ray at {address} refuses the caller (HTTP {error.code}). {advice}")
    # 502 to 504 are a proxy's. A 500 without a reason that we know is one of a head that is starting or ending.
    if error.code in (502, 503, 504) or (error.code == 500 and not _is_refusal(words)):
        return RaySilent(f"Ray at {address}: HTTP {error.code} {words}")
    return RayRefused(f"Ray at {address}: {words or f'HTTP {error.code}'}")


def _is_refusal(words: str) -> bool:
    return any(mark in words for mark in ("already exists", "ValueError", "TypeError", "does not exist", "not a valid"))


def _last_line(text: str) -> str:
    """Of a traceback, which is what Ray answers."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 2]
    return lines[-1][-400:] if lines else ""


def _job(one: Mapping[str, Any]) -> RayJob:
    host = str(one.get("driver_agent_http_address") or "").removeprefix("http://")
    code = one.get("driver_exit_code")
    return RayJob(
        name=str(one["submission_id"]),
        status=str(one.get("status") or ""),
        message=str(one.get("message") or ""),
        error_type=str(one.get("error_type") or ""),
        node=host.rpartition(":")[0],
        exit_code=code if isinstance(code, int) else None,
    )


def _node(one: Mapping[str, Any], used: Mapping[str, str]) -> RayNode:
    raylet = one.get("raylet") or {}
    total = raylet.get("resourcesTotal") or {}
    in_use = {kind: float(count) for count, _, kind in _USED.findall(used.get(str(raylet.get("nodeId")), ""))}
    return RayNode(
        name=str(one.get("hostname") or one.get("ip") or ""),
        state=str(raylet.get("state") or "unknown").lower(),
        cpus=float(total.get("CPU", 0.0)),
        cpus_used=in_use.get("CPU", 0.0),
        gpus=int(total.get("GPU", 0)),
        gpus_used=in_use.get("GPU", 0.0),
        memory_mb=int(total.get("memory", 0.0)) >> 20,
        address=str(raylet.get("nodeManagerAddress") or one.get("ip") or ""),
        resources=frozenset(total),
    )


def _in_camel_case(name: str) -> str:
    """What the dashboard makes of a name: my_gpu is myGpu."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)
