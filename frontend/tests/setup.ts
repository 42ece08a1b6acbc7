import "@testing-library/jest-dom/vitest";
import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// The patience of a busy machine; a passing test does not wait for it.
configure({ asyncUtilTimeout: 60_000 });

class Observer {
  observe() {}
  unobserve() {}
  disconnect() {}
}

// What jsdom lacks.
Object.assign(globalThis, {
  ResizeObserver: Observer,
  IntersectionObserver: Observer,
  scrollTo: () => undefined,
  matchMedia: (query: string) => ({
    matches: false,
    media: query,
    addEventListener() {},
    removeEventListener() {},
    addListener() {},
    removeListener() {},
  }),
});
Element.prototype.scrollIntoView = () => undefined;

// Without a layout all boxes are empty, and Mantine hides an open menu whose button seems to be
// scrolled out of view as soon as its place is computed again.
Object.defineProperties(document.documentElement, {
  clientWidth: { value: 1024 },
  clientHeight: { value: 768 },
});
Element.prototype.getBoundingClientRect = () => new DOMRect(8, 8, 120, 24);

// The tests of a worker share its modules and its window: none may see what the one before left.
// Globals and spies are restored by the options in vite.config.ts.
afterEach(async () => {
  cleanup();
  vi.useRealTimers();
  // The load of a page that is still under way when the file ends would fail, and be tried again.
  await vi.dynamicImportSettled();
  notifications.clean();
  notifications.cleanQueue();
  window.localStorage.clear();
  window.sessionStorage.clear();
});
