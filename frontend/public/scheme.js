// Sets light or dark before the first paint. A file of its own, because the content security policy allows no inline script.
(() => {
  let kept = null;
  try {
    kept = localStorage.getItem("mantine-color-scheme-value");
  } catch {
    // Storage is blocked: follow the system.
  }
  const dark =
    kept === "dark" || (kept !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
