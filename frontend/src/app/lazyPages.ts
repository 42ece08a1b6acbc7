/** Pages that are loaded when they are opened. */
import type { ReactNode } from "react";

interface LazyPage {
  preload?: (() => Promise<void> | undefined) | undefined;
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
