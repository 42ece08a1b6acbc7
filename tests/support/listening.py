"""Serves an application of the test's event loop on a real socket, for synchronous HTTP clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from app.connections import (
    STALLED_SECONDS,
    Connections,
    create_protocol_class,
    end_stalled_clients,
)
from tests.support.waiting import until


@asynccontextmanager
async def listening(
    app: FastAPI,
    port: int = 0,
    bounds: Connections | None = None,
    stalled_seconds: float = STALLED_SECONDS,
) -> AsyncIterator[str]:
    """Serves a started application on a loopback port, by default a free one; yields its URL.

    Blocking calls to it must run in `asyncio.to_thread`.
    """
    listener = socket.create_server(("127.0.0.1", port))
    end_stalled_clients(listener, stalled_seconds)
    bounds = bounds or Connections(most=1_000, most_per_address=1_000)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=create_protocol_class(bounds),
            log_config=None,
            access_log=False,
            lifespan="off",
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await until(lambda: server.started, "the server listens")
    host, taken = listener.getsockname()
    try:
        yield f"http://{host}:{taken}"
    finally:
        server.should_exit = True
        app.state.hub.close()
        await serving
