"""The services under test: a separate compose project, which is always taken down."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tests.compose.engine import TOP, ComposeError, Engine, run

PROJECT = "huai-test-compose"
SERVICES = ("mirror-update", "upstream", "rsyncd", "downstream", "plain")
_FILES = (TOP / "docker-compose.yml", TOP / "tests" / "compose" / "override.yml")
_BUILD_SECONDS = 2000
"""Seconds for a build: the engine is compiled again while other tests run."""
_HEALTHY_SECONDS = 120
_POLL_SECONDS = 0.25
_SERVICE = "com.docker.compose.service"
_Value = TypeVar("_Value")


class State(NamedTuple):
    """The state of a container."""

    identity: str
    running: bool
    started: str
    exit_code: int
    health: str


class Stack:
    """The project; its commands see no other containers."""

    def __init__(self, engine: Engine, environment: dict[str, str]) -> None:
        """Start nothing yet; `environment` is for docker-compose.yml."""
        self._engine = engine
        self._environment = {
            "HUAI_IMAGE": PROJECT,
            "HUAI_HTTP_PORT": "0",
            "HUAI_RSYNC_PORT": "0",
            **environment,
        }

    def compose(self, *arguments: str, seconds: float = 180) -> str:
        """Run a compose command on this project."""
        files = (word for file in _FILES for word in ("--file", str(file)))
        project = ("--project-name", PROJECT, "--project-directory", str(TOP))
        return run(
            [*self._engine.compose, *project, *files, *arguments],
            seconds=seconds,
            environment=self._environment,
        )

    def build(self) -> None:
        """Build the image, with cached layers."""
        self.compose("config", "--quiet")
        self.compose("build", "upstream", seconds=_BUILD_SECONDS)

    def up(self) -> None:
        """Start all services, and wait until they are healthy."""
        self.compose("up", "--detach", "--no-build", *SERVICES)
        self.wait_until_healthy()

    def down(self) -> None:
        """Remove containers, volumes and network."""
        self.compose("down", "--volumes", "--remove-orphans", "--timeout", "5")

    def once(self, *command: str) -> str:
        """Run a command like `mirror-update`, in a temporary container."""
        return self.compose("run", "--rm", "-T", "--no-deps", "mirror-update", *command)

    def inside(self, service: str, *command: str) -> str:
        """Run a command in the container of a service."""
        return self._engine.docker("exec", self.state(service).identity, *command)

    def kill(self, *services: str) -> None:
        """Kill a service by `docker kill`: at once, without a restart."""
        self._engine.docker("kill", *(self.state(service).identity for service in services))

    def start(self, *services: str) -> None:
        """Start a killed service again."""
        self._engine.docker("start", *(self.state(service).identity for service in services))

    def crash(self, service: str) -> None:
        """Kill the program from inside; the restart policy has to bring it back."""
        before = self.state(service).started
        # The container may end before the shell that ended it.
        script = "(sleep 1; kill -9 $(cat /proc/1/task/1/children)) >/dev/null 2>&1 &"
        self.inside(service, "sh", "-c", script)
        wait_for(
            f"{service} restarted after its crash",
            lambda: self.state(service),
            lambda state: state.running and state.started != before,
            seconds=60,
        )

    def stop(self, service: str) -> State:
        """Ask a service to end."""
        self.compose("stop", service)
        return self.state(service)

    def logs(self, service: str | None = None) -> str:
        """Return the latest logs of the services."""
        return self.compose("logs", "--no-color", "--tail=25", *([service] if service else []))

    def serial(self) -> int:
        """Return the serial of the newest commit, from the published port."""
        address = self.compose("port", "upstream", "8440").strip()
        url = f"http://{address}/api/v1/modules/sample"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return int(json.load(reply)["serial"])
        except (urllib.error.URLError, TimeoutError) as error:
            raise ComposeError(f"{url}: {error}") from None

    def wait_until_healthy(self) -> None:
        """Wait until all services that were not stopped are healthy."""
        wait_for(
            "all services healthy",
            lambda: {name: state.health for name, state in self._states().items() if state.running},
            lambda found: len(found) >= len(SERVICES) - 1 and set(found.values()) == {"healthy"},
            seconds=_HEALTHY_SECONDS,
        )

    def state(self, service: str) -> State:
        """Return the state of a service's container."""
        states = self._states()
        if service not in states:
            raise ComposeError(f"{service} has no container")
        return states[service]

    def _states(self) -> dict[str, State]:
        labels = (f"com.docker.compose.project={PROJECT}", "com.docker.compose.oneoff=False")
        filters = [f"--filter=label={label}" for label in labels]
        containers = self._engine.docker("ps", "--all", "--quiet", *filters).split()
        inspected = json.loads(self._engine.docker("inspect", *containers)) if containers else []
        return {one["Config"]["Labels"][_SERVICE]: _state(one) for one in inspected}


def wait_for(
    subject: str, look: Callable[[], _Value], enough: Callable[[_Value], bool], *, seconds: float
) -> _Value:
    """Call `look` until its result is enough; else `ComposeError` with the last result."""
    end = time.monotonic() + seconds
    while not enough(state := look()):
        if time.monotonic() > end:
            raise ComposeError(f"{subject}: not so after {seconds:.0f} s, but:\n{state}")
        time.sleep(_POLL_SECONDS)
    return state


def _state(inspected: dict[str, Any]) -> State:
    state = inspected["State"]
    return State(
        identity=inspected["Id"],
        running=state["Running"],
        started=state["StartedAt"],
        exit_code=state["ExitCode"],
        health=state.get("Health", {}).get("Status", "none"),
    )
