"""docker-compose.yml: commands, settings, secrets and health checks agree with the code."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from app.main import create_app
from app.settings import Settings, load_settings
from palestra.cli import exec_commands
from palestra.cli.embedded.broker_users import SERVER_RULES
from palestra.python_command import build_python_command

REPOSITORY = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {
    name: service
    for name, service in SERVICES.items()
    if str(service["image"]).startswith("palestra-")
}
GIVEN = {
    "POSTGRES_PASSWORD": "secret-of-postgres",
    "VALKEY_PASSWORD": "secret-of-valkey",
    "PALESTRA_PUBLIC_URL": "https://palestra.example.org",
}
WORKERS = ("worker", "worker-cpu")
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def substitute(text: str, given: dict[str, str] = GIVEN) -> str:
    """Substitutes variables as docker compose does."""

    def get_value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        if name in given:
            return given[name]
        assert kind == "-", f"{name} is required: {rest}"
        return str(rest)

    return VARIABLE.sub(get_value, text)


def get_environment(service: dict[str, Any]) -> dict[str, str]:
    return {name: substitute(str(value)) for name, value in service.get("environment", {}).items()}


def test_the_compose_file_has_the_expected_services() -> None:
    assert set(SERVICES) == {
        "postgres",
        "valkey",
        "migrate",
        "server",
        "daemons",
        "worker",
        "worker-cpu",
    }
    assert set(OURS) == {"migrate", "server", "daemons", "worker", "worker-cpu"}


@pytest.mark.parametrize("name", OURS)
def test_the_settings_exist_and_are_consistent(name: str) -> None:
    if name in WORKERS:
        assert get_environment(SERVICES[name]).keys() == {"MUJOCO_GL"}
        return
    settings = load_settings(environ=get_environment(SERVICES[name]))
    assert settings.database == "postgresql://palestra:secret-of-postgres@postgres:5432/palestra"
    for url in (settings.broker_url, settings.bus_url):
        assert url is not None
        parts = urlsplit(url.get_secret_value())
        assert (parts.hostname, parts.username, parts.password) == (
            "valkey",
            "server",
            "secret-of-valkey",
        )
    assert settings.worker_broker_url is not None
    parts = urlsplit(settings.worker_broker_url.get_secret_value())
    assert (parts.hostname, parts.username, parts.password) == ("valkey", None, None)
    assert str(settings.data_dir) in {volume.split(":")[1] for volume in SERVICES[name]["volumes"]}


def test_valkey_has_the_servers_user() -> None:
    """The user is that of the embedded broker, with a password that the shell substitutes."""
    shell, flag, script = SERVICES["valkey"]["command"]
    assert (shell, flag) == ("sh", "-c")
    assert {
        variable: substitute(value) for variable, value in SERVICES["valkey"]["environment"].items()
    } == {"VALKEYCLI_AUTH": "secret-of-valkey"}
    written = script.replace("$$", "$").replace("exec valkey-server -", "cat", 1)
    given = {"VALKEYCLI_AUTH": "secret-of-valkey", "PATH": os.defpath}
    configuration = subprocess.run(
        ["sh", "-c", written], env=given, capture_output=True, text=True, check=True
    ).stdout
    users = {line for line in configuration.splitlines() if line.startswith("user ")}
    assert users == {
        "user default off resetpass",
        f"user server on >secret-of-valkey {SERVER_RULES}",
    }
    assert 'save ""' in configuration
    assert "--user server" in SERVICES["valkey"]["healthcheck"]["test"][1]


def test_the_server_may_be_reached_by_workers_and_by_its_public_name() -> None:
    settings = load_settings(environ=get_environment(SERVICES["server"]))
    assert settings.allow_remote
    assert {"server", "localhost", "palestra.example.org"} <= settings.host_names
    (published,) = SERVICES["server"]["ports"]
    assert substitute(published) == f"127.0.0.1:8080:{settings.port}"


@pytest.mark.parametrize("name", OURS)
def test_the_commands_are_accepted_by_the_command_line(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs the real command line until it would replace its process by the program.

    The program's own parser then checks the arguments.
    """
    from palestra.cli.main import main

    program, *arguments = [substitute(part) for part in SERVICES[name]["command"]]
    assert program == "palestra"
    became: list[list[str]] = []

    def remember(_path: str, command: list[str]) -> None:
        became.append(command)
        raise SystemExit

    monkeypatch.setattr(exec_commands.os, "execv", remember)
    with pytest.raises(SystemExit):
        main(arguments)
    ((*python, module),) = [command[:4] for command in became]
    assert [*python, module] == build_python_command(module)
    rest = became[0][4:]
    usage = subprocess.run(
        build_python_command(module, "--help"),
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
    ).stdout
    for option in (part for part in rest if part.startswith("--")):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", usage), (
            f"{module} knows no {option}"
        )
    if name == "migrate":
        assert rest == ["upgrade"]


@pytest.mark.parametrize("name", WORKERS)
def test_the_workers_user_can_read_the_token_secret(
    name: str,
) -> None:
    """Regression: a bind-mounted file belongs to its creator, and the worker's user could not read
    it.
    """
    worker = SERVICES[name]
    command = worker["command"]
    (secret,) = worker["secrets"]
    assert command[command.index("--token-file") + 1] == f"/run/secrets/{secret['source']}"
    assert COMPOSE["secrets"][secret["source"]] == {"environment": "PALESTRA_WORKER_TOKEN"}
    user = re.search(
        r"useradd --uid (\d+)", (REPOSITORY / worker["build"]["dockerfile"]).read_text()
    )
    assert user is not None
    assert (secret["uid"], secret["mode"]) == (user[1], 0o400)
    assert command[command.index("--state-dir") + 1] in {
        volume.split(":")[1] for volume in worker["volumes"]
    }
    assert (
        command[command.index("--server") + 1]
        == f"http://server:{load_settings(environ=get_environment(SERVICES['server'])).port}"
    )
    assert worker["profiles"] == ["cpu" if name == "worker-cpu" else "gpu"]


def test_slots_gpus_pools_and_names_of_workers_are_settings() -> None:
    """Regression: they were constants of the compose file."""
    chosen = {
        **GIVEN,
        "PALESTRA_SLOTS": "4",
        "PALESTRA_GPUS": "0,1",
        "PALESTRA_POOL": "atari",
        "PALESTRA_WORKER_NAME": "box",
    }
    command = [substitute(part, chosen) for part in SERVICES["worker"]["command"]]
    for option, value in (
        ("--slots", "4"),
        ("--gpus", "0,1"),
        ("--pool", "atari"),
        ("--name", "box"),
    ):
        assert command[command.index(option) + 1] == value
    (device,) = SERVICES["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]
    assert substitute(device["count"], {**chosen, "PALESTRA_GPU_COUNT": "2"}) == "2"
    assert "--gpus" not in SERVICES["worker-cpu"]["command"]


def test_workers_on_other_machines_can_reach_the_broker() -> None:
    """Regression: workers received a host name of the compose network, and no port
    was published.
    """
    chosen = {**GIVEN, "PALESTRA_BROKER_HOST": "10.0.0.5", "PALESTRA_BROKER_BIND": "10.0.0.5"}
    told = urlsplit(
        substitute(SERVICES["server"]["environment"]["PALESTRA_WORKER_BROKER_URL"], chosen)
    )
    (published,) = SERVICES["valkey"]["ports"]
    assert substitute(published, chosen) == f"{told.hostname}:{told.port}:6379"
    assert substitute(published) == "127.0.0.1:6379:6379"


def test_the_workers_image_has_the_environments_of_the_extras() -> None:
    """Regression: a worker in a container had only Gymnasium's own environments."""
    extras = substitute(SERVICES["worker"]["build"]["args"]["EXTRAS"]).split(",")
    assert {"atari", "box2d", "mujoco", "sb3"} <= set(extras)
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(extras) <= set(declared)
    assert f"ARG EXTRAS={','.join(extras)}\n" in (REPOSITORY / "Dockerfile.worker").read_text()


def test_the_server_s_health_check_asks_a_route_that_exists() -> None:
    kind, program, flag, text = SERVICES["server"]["healthcheck"]["test"]
    assert (kind, program, flag) == ("CMD", "python", "-c")
    compile(text, "health check", "exec")
    found = re.search(r"'(http://[^']+)'", text)
    assert found is not None
    url = urlsplit(found[1])
    assert url.port == load_settings(environ=get_environment(SERVICES["server"])).port
    app = create_app(Settings())
    assert url.path in app.openapi()["paths"]


def test_services_wait_for_the_services_they_need() -> None:
    for name in ("server", "daemons"):
        assert SERVICES[name]["depends_on"] == {
            "migrate": {"condition": "service_completed_successfully"},
            "valkey": {"condition": "service_healthy"},
        }
    for name in WORKERS:
        assert SERVICES[name]["depends_on"] == {"server": {"condition": "service_healthy"}}
    for name in ("postgres", "valkey", "server"):
        assert SERVICES[name]["healthcheck"]["test"]


def test_the_file_contains_no_secret_and_no_default_for_one() -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    required = {name for name, kind, _ in VARIABLE.findall(text) if kind == "?"}
    assert required == {"POSTGRES_PASSWORD", "VALKEY_PASSWORD"}
    for name, kind, _ in VARIABLE.findall(text):
        assert not re.search("PASSWORD|SECRET|KEY|TOKEN$", name) or kind == "?"
    for match in re.findall(r"://[^@\s\"']*@", text):
        assert "${" in match


def test_volumes_and_secrets_that_are_named_exist() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in COMPOSE["volumes"], name
        for secret in service.get("secrets", []):
            assert secret["source"] in COMPOSE["secrets"], name


@pytest.mark.parametrize("name", ["Dockerfile.server", "Dockerfile.worker"])
def test_the_images_are_built_from_files_that_exist(name: str) -> None:
    lines = (REPOSITORY / name).read_text().splitlines()
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (REPOSITORY / source).exists(), source
    text = "\n".join(lines)
    assert "constraints.txt" in text
    assert "\nUSER palestra" in text
    assert ('".[server]"' in text) is (name == "Dockerfile.server")
    assert name in {service["build"]["dockerfile"] for service in OURS.values()}


def test_docker_compose_reads_the_file() -> None:
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run(
            [docker, "compose", "version"], capture_output=True, check=False
        ).returncode
        != 0
    ):
        pytest.skip("docker compose is not installed here")
    done = subprocess.run(
        [docker, "compose", "--profile", "gpu", "--profile", "cpu", "config", "--quiet"],
        cwd=REPOSITORY,
        env=GIVEN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
