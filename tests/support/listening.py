"""A server of the test's own event loop behind a real socket, for programs that speak HTTP and know
no event loop.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI


@asynccontextmanager
async def listening(app: FastAPI, port: int = 0) -> AsyncIterator[str]:
    """Serves an application that was started already on a port of the loopback interface, a free
    one by default; yields its address.

    Blocking calls to it go through `asyncio.to_thread`.
    """
    server = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=port, log_config=None, access_log=False, lifespan="off"
        )
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    host, taken = server.servers[0].sockets[0].getsockname()
    try:
        yield f"http://{host}:{taken}"
    finally:
        server.should_exit = True
        app.state.hub.close()
        await serving
