/** The shared worker that holds the live connection of all tabs of a browser. */
import { PortServer } from "./portServer";
import { SharedConnection } from "./sharedConnection";

const LOOK_MS = 30_000;

/** The scope of a shared worker, whose name is the path below which the server is published. */
interface WorkerScope {
  name: string;
  onconnect: (event: MessageEvent) => void;
}

const scope = globalThis as unknown as WorkerScope;
const server = new PortServer(
  new SharedConnection({
    fetch: (path, init) => fetch(scope.name + path, init),
    random: Math.random,
  }),
);
scope.onconnect = (event) => {
  const [port] = event.ports;
  if (port !== undefined) server.serve(port);
};
setInterval(() => server.dropSilent(), LOOK_MS);
