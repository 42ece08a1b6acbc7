import { createElement, Fragment } from "react";

const STYLE = { fontSize: "0.95em" };

/** A message of the server; commands that it names between backticks are shown as code. */
export function Message({ text }: { text: string }) {
  const parts = text
    .split(/`([^`]+)`/)
    .map((part, i) => (i % 2 === 1 ? createElement("code", { style: STYLE }, part) : part));
  // Children by position, which need no keys.
  return createElement(Fragment, null, ...parts);
}
