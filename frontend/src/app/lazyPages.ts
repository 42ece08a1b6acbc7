/** Pages that are loaded when they are opened, or before, once the first page stands. */
import { lazyRouteComponent } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { pause } from "@/lib/pause";
import { getPublicPath } from "@/lib/publicPath";

interface LazyPage {
  preload?: (() => Promise<void> | undefined) | undefined;
}

/** Milliseconds in which the first page has the connection to itself. */
const PRELOAD_DELAY = 1_500;
/** Milliseconds between two pages that are loaded before they are opened. */
const PRELOAD_PAUSE = 50;
const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 10_000;

const pages: LazyPage[] = [];

/** Returns the component of a page that is loaded when it is opened; see `loadThroughOutages`. */
export const lazyPage: typeof lazyRouteComponent = (load, name) => {
  const page = lazyRouteComponent(() => loadThroughOutages(load), name);
  pages.push(page);
  return page;
};

/**
 * Loads all pages one after the other, so that each opens at once, also while the server is away.
 *
 * Waits before each one until `isBusy` is false and the browser has nothing to do, so that the page
 * that is shown goes before. Ends when `signal` is aborted.
 */
export async function preloadPages(isBusy: () => boolean, signal: AbortSignal): Promise<void> {
  await pause(PRELOAD_DELAY, signal);
  for (const page of pages) {
    do await pauseUntilIdle(signal);
    while (!signal.aborted && isBusy());
    if (signal.aborted) return;
    await page.preload?.();
  }
}

async function pauseUntilIdle(signal: AbortSignal): Promise<void> {
  await pause(PRELOAD_PAUSE, signal);
  // Safari has no such callback.
  if (!signal.aborted && "requestIdleCallback" in window)
    await new Promise<void>((done) => requestIdleCallback(() => done(), { timeout: 2_000 }));
}

/**
 * Loads a module, and repeats it while the server is away.
 *
 * Where the server answers but the module does not come, a newer version was installed. The error
 * is the router's, which loads the document again.
 */
export async function loadThroughOutages<Module>(load: () => Promise<Module>): Promise<Module> {
  for (let delay = FIRST_DELAY; ; delay = Math.min(2 * delay, LONGEST_DELAY)) {
    try {
      return await load();
    } catch {
      if (await isServerThere()) {
        return await load();
      }
      await pause(delay);
    }
  }
}

async function isServerThere(): Promise<boolean> {
  try {
    return (await fetch(`${getPublicPath()}/healthz`, { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

/**
 * Returns the component of a route whose pages the router loads before it renders the route, so
 * that the page shown before stays meanwhile.
 */
export function afterLoading<Component extends () => ReactNode>(
  component: Component,
  ...pages: LazyPage[]
): Component & { preload(): Promise<void> } {
  return Object.assign(component, {
    preload: async () => {
      await Promise.all(pages.map((page) => page.preload?.()));
    },
  });
}
