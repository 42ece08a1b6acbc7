import "@/ui/layers.css";
import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "@mantine/core/styles.layer.css";
import "@mantine/notifications/styles.layer.css";
import "@/ui/tokens.css";
import "@/ui/base.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { installProbe } from "@/live/curveRegistry";
import { App } from "./App";
import { preloadPages } from "./lazyPages";

/** Milliseconds for which the first page has the connection to itself. */
const PRELOAD_DELAY = 1_000;

installProbe();
const host = document.getElementById("root");
if (host !== null) {
  createRoot(host).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
  window.addEventListener("load", () => {
    setTimeout(() => void preloadPages(), PRELOAD_DELAY);
  });
}
