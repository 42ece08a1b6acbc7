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

installProbe();
const host = document.getElementById("root");
if (host !== null) {
  createRoot(host).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
