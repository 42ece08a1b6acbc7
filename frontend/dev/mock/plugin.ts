/** A mock of the server's API inside Vite's development server. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin, ViteDevServer } from "vite";
import { type Client, clients, log, tick, write } from "./events.ts";
import { answer, setScenario } from "./routes.ts";

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://mock");
  // Every project of the mock holds the same experiments.
  const path = url.pathname.replace("/api/v1", "").replace(/^\/projects\/[^/]+(?=\/)/, "");
  if (path.startsWith("/scenario/")) setScenario(path.slice(10));
  let body = "";
  for await (const chunk of request) body += String(chunk);
  if (path === "/events:stream") {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const client = { response, ...(JSON.parse(body) as Pick<Client, "subscriptions">) };
    for (const event of log) write(client, event, true);
    const cursors = client.subscriptions.map(({ after }) => after ?? log.length);
    response.write(`event: cursors\ndata: ${JSON.stringify(cursors)}\n\n`);
    clients.add(client);
    response.on("close", () => clients.delete(client));
    return;
  }
  const content = answer(request.method ?? "GET", path, url.searchParams, body);
  const status = typeof content === "number" ? content : 200;
  const problem = {
    type: "about:blank",
    title: "Error",
    status,
    code: "mock",
    detail:
      status === 401
        ? "Log in first."
        : status === 404
          ? "There is no such resource in this project."
          : "The server failed. Nothing was changed; its log has the request_id.",
    request_id: "01kagm5c7x9q2v8r",
    errors: [],
  };
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(status === 200 ? content : problem));
}

function install(server: Pick<ViteDevServer, "middlewares">): void {
  setInterval(tick, 250).unref();
  server.middlewares.use((request, response, next) => {
    if (request.url?.startsWith("/api/v1")) void serve(request, response);
    else next();
  });
}

export function mockServer(): Plugin {
  return { name: "palestra-mock", configureServer: install, configurePreviewServer: install };
}
