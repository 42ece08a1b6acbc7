import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { keys } from "@/api/queries";
import { listenToKeys } from "@/lib/shortcuts";
import { makeStream, StreamContext } from "@/live/useLive";
import { theme, variables } from "@/ui/theme";
import { preloadPages } from "./lazyPages";
import { makeQueryClient, repeatAfterOutages } from "./queryClient";
import { makeRouter } from "./router";

/** The providers, created once per tab. */
export function App() {
  const [parts] = useState(() => {
    const client = makeQueryClient();
    const stream = makeStream();
    stream.onDenied = () => void client.resetQueries({ queryKey: keys.session });
    return { client, router: makeRouter(client), stream };
  });
  useEffect(() => listenToKeys(), []);
  useEffect(() => repeatAfterOutages(parts.client, parts.stream), [parts]);
  useEffect(() => {
    const closed = new AbortController();
    void preloadPages(() => parts.client.isFetching() > 0, closed.signal);
    return () => closed.abort();
  }, [parts]);
  return (
    <MantineProvider theme={theme} cssVariablesResolver={variables} defaultColorScheme="auto">
      <QueryClientProvider client={parts.client}>
        <StreamContext value={parts.stream}>
          <Notifications position="bottom-right" autoClose={6000} limit={4} />
          <RouterProvider router={parts.router} />
        </StreamContext>
      </QueryClientProvider>
    </MantineProvider>
  );
}
