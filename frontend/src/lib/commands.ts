import { getServerAddress } from "./publicPath";

/** The command that submits an example to this server, which empty lists show. */
export function writeSubmitCommand(seeds: string): string {
  return `palestra submit examples/cartpole-dqn.yaml --seeds ${seeds} --server ${getServerAddress()}`;
}
