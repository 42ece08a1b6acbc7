/** The port of a tab to the shared connection: that of the worker, or one within the tab. */
import { getPublicPath } from "@/lib/publicPath";
import type { FromTab, ToTab, Transport } from "./connectionTypes";
import { type Port, PortServer } from "./portServer";
import { SharedConnection } from "./sharedConnection";

/** Time in which the worker must answer; else the tab connects by itself. */
const ANSWER_MS = 5_000;

export interface TabPort {
  send(message: FromTab): void;
}

export type OpenPort = (onMessage: (message: ToTab) => void) => TabPort;

/** Returns a port to a connection of this tab alone. */
export function makeOwnPort(transport: Transport): OpenPort {
  return (onMessage) => {
    const port: Port = {
      onmessage: null,
      postMessage: (message) => onMessage(message as ToTab),
    };
    new PortServer(new SharedConnection(transport)).serve(port);
    return { send: (data) => port.onmessage?.(new MessageEvent("message", { data })) };
  };
}

/**
 * Returns a port to the worker that all tabs share. Where the browser has no such workers, or the
 * worker does not answer, the tab connects by itself.
 */
export function makeSharedPort(transport: Transport): OpenPort {
  if (typeof SharedWorker === "undefined") return makeOwnPort(transport);
  return (onMessage) => {
    let own: TabPort | null = null;
    const worker = new SharedWorker(new URL("./streamWorker.ts", import.meta.url), {
      type: "module",
      name: getPublicPath(),
    });
    const connectAlone = () => {
      if (own !== null) return;
      clearTimeout(timer);
      worker.port.close();
      own = makeOwnPort(transport)(onMessage);
      onMessage({ kind: "dropped" });
    };
    const timer = setTimeout(connectAlone, ANSWER_MS);
    worker.onerror = connectAlone;
    worker.port.onmessage = ({ data }) => {
      clearTimeout(timer);
      if (own === null) onMessage(data as ToTab);
    };
    return { send: (message) => (own ?? wrap(worker.port)).send(message) };
  };
}

function wrap(port: MessagePort): TabPort {
  return { send: (message) => port.postMessage(message) };
}
