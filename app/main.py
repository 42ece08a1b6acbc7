"""The composition root of the server, and its command: `python -m app.main`."""

import argparse
import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Final

import structlog
import uvicorn
from fastapi import Depends, FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.telemetry import TelemetryConfig

import palestra
from app import process_parts, startup
from app.allocator import limit_arenas
from app.api import dashboard, errors, expensive_reads, health, openapi, refusals, v1
from app.api.abandoned_reads import AbandonedReads
from app.api.compression import Compression
from app.api.head_requests import HeadRequests
from app.api.login_rate import LoginClock
from app.api.public_path import PublicPath
from app.api.query import check_query
from app.api.request_rate import RequestRate
from app.api.security_middleware import Guard
from app.api.turns import Turns
from app.connections import (
    Connections,
    create_protocol_class,
    end_stalled_clients,
    raise_descriptor_limit,
)
from app.db.startup_check import DatabaseStartError, check_database
from app.domain.login_limits import LoginLimits
from app.logging import configure_logging, scrub_text
from app.private_files import make_files_private, tighten_files
from app.services.access.attempt_tokens import AttemptTokens
from app.services.access.device_keys import DeviceKeys
from app.services.access.last_used import UsedCredentials
from app.services.audit.refusals import Refusals
from app.services.curves.record_exports import RunningExports
from app.settings import Settings, SettingsError, load_settings

_log = structlog.get_logger("palestra.server")

_NO_TRACES: Final[TelemetryConfig] = {
    "tracing": False, "metrics": False, "logs": False, "auto_configure": False,
}  # fmt: skip
"""FastAPI would otherwise look for a provider of traces at each request."""

USAGE_ERROR: Final = 2
START_ERROR: Final = 1
INTERRUPTED: Final = 130


def create_app(settings: Settings) -> FastAPI:
    """Returns the application.

    Its lifespan opens the database and starts the bus, the ingest and, if configured, the daemons.
    """
    app = FastAPI(
        title="Palestra",
        version=palestra.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        telemetry=_NO_TRACES,
        generate_unique_id_function=openapi.build_operation_id,
        servers=[{"url": settings.public_path}] if settings.public_path else None,
    )
    app.state.settings = settings
    app.state.touches = UsedCredentials()
    app.state.attempt_tokens = AttemptTokens()
    app.state.login_limits = LoginLimits()
    app.state.login_clock = LoginClock()
    app.state.request_rate = RequestRate(settings)
    app.state.device_keys = DeviceKeys(settings.data_dir)
    app.state.refusals = Refusals()
    app.state.running_exports = RunningExports()
    app.state.expensive_reads = expensive_reads.make_turns()
    app.state.writes = Turns(1, "too_many_writes", "changes")
    app.state.readiness = health.ReadinessCheck()
    errors.install(app)
    refusals.install(app)
    app.include_router(health.router, dependencies=[Depends(check_query)])
    v1.include(app)
    app.router.default = dashboard.Dashboard(settings.dashboard_dir, settings.public_path)
    app.add_middleware(Compression)
    app.add_middleware(AbandonedReads)
    app.add_middleware(HeadRequests, router=app.router)
    tls = settings.secure_cookies
    app.add_middleware(Guard, host_names=settings.host_names, public=v1.PUBLIC, tls=tls)
    if settings.public_path:
        app.add_middleware(PublicPath, path=settings.public_path)
    app.openapi = cache(lambda: openapi.build(app))  # type: ignore[method-assign]
    _refuse_open_routes(app)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the server until a signal stops it; returns the exit code."""
    try:
        settings = load_settings(*_read_arguments(arguments))
        startup.check_address(settings)
    except (SettingsError, startup.ServerStartError) as error:
        return _fail(str(error), USAGE_ERROR)
    configure_logging(settings.log_level, settings.log_format)
    if os.geteuid() == 0:
        _log.warning(
            "server.runs_as_root",
            remedy="start the server as a separate user, to limit what a fault in it can change",
        )
    try:
        with startup.reserve_resources(settings) as listener:
            if tightened := tighten_files(settings):
                _log.warning("server.files_made_private", files=[str(file) for file in tightened])
            asyncio.run(check_database(settings.database))
            return _serve(settings, listener)
    except startup.ServerStartError as error:
        return _fail(str(error), error.exit_code)
    except DatabaseStartError as error:
        return _fail(scrub_text(str(error)), START_ERROR)


def _serve(settings: Settings, listener: startup.Listener) -> int:
    limit_arenas()
    app = create_app(settings.model_copy(update={"port": listener.port}))
    bounds = Connections.from_settings(settings, raise_descriptor_limit())
    end_stalled_clients(listener.socket)
    config = uvicorn.Config(
        app,
        http=create_protocol_class(bounds),
        ws="none",
        backlog=bounds.backlog,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
        lifespan="on",
    )
    server = _Server(config)
    # uvicorn raises a caught signal again at its end, when its own handlers are gone.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listener.socket])
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0 if server.started else START_ERROR


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Excludes the objects loaded so far from garbage collection.

        Otherwise every large body would make the collector scan all of them.
        """
        await super().startup(sockets)
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes the live streams before shutting down, since they do not end by themselves."""
        self.config.app.state.hub.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _read_arguments(arguments: Sequence[str] | None) -> tuple[dict[str, object], None, Path | None]:
    parser = argparse.ArgumentParser(
        prog="python -m app.main", description="Runs the Palestra server.", allow_abbrev=False
    )
    parser.add_argument("--config", type=Path, help="TOML file with settings")
    for name in (
        "host",
        "port",
        "data-dir",
        "database-url",
        "broker-url",
        "public-url",
        "log-level",
        "log-format",
    ):
        parser.add_argument(f"--{name}")
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        default=None,
        help="permit to listen beyond this machine",
    )
    parser.add_argument(
        "--daemons",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run dispatcher, reaper, compactor and remover here",
    )
    values = vars(parser.parse_args(arguments))
    return values, None, values.pop("config")


def _fail(sentence: str, exit_code: int) -> int:
    sys.stderr.write(f"palestra server: {sentence}\n")
    return exit_code


def _refuse_open_routes(app: FastAPI) -> None:
    """Fails at start if a route of the API declares no required permission."""
    for context in iter_route_contexts(app.routes):
        path = context.path or ""
        if path.startswith(v1.PREFIX) and openapi.need_of(context) is None:
            for method in context.methods or ():
                if (method, path) not in v1.PUBLIC:
                    raise RuntimeError(f"{method} {path} does not say what its caller needs")


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        await process_parts.start(app.state, stack)
        app.state.ready = True
        _log.info("server.ready", version=palestra.__version__, address=app.state.settings.base_url)
        yield
        app.state.ready = False


if __name__ == "__main__":
    make_files_private()
    sys.exit(main())
