/** The shared worker that holds the live connection of all tabs of a browser. */
import { PortServer } from "./portServer";
import { SharedConnection } from "./sharedConnection";

const LOOK_MS = 30_000;

const server = new PortServer(
  new SharedConnection({ fetch: (...args) => fetch(...args), random: Math.random }),
);
const scope = globalThis as unknown as { onconnect: (event: MessageEvent) => void };
scope.onconnect = (event) => {
  const [port] = event.ports;
  if (port !== undefined) server.serve(port);
};
setInterval(() => server.dropSilent(), LOOK_MS);
