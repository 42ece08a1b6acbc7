import "@testing-library/jest-dom/vitest";
import { notifications } from "@mantine/notifications";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// A busy machine needs more than the default of one second; a passing test does not wait.
configure({ asyncUtilTimeout: 10_000 });

class Observer {
  observe() {}
  unobserve() {}
  disconnect() {}
}

vi.stubGlobal("ResizeObserver", Observer);
vi.stubGlobal("IntersectionObserver", Observer);
vi.stubGlobal("scrollTo", () => undefined);
vi.stubGlobal("matchMedia", (query: string) => ({
  matches: false,
  media: query,
  addEventListener() {},
  removeEventListener() {},
  addListener() {},
  removeListener() {},
}));

// Without a layout all boxes are empty, and Mantine hides an open menu whose button seems to be
// scrolled out of view as soon as its place is computed again.
Object.defineProperties(document.documentElement, {
  clientWidth: { value: 1024 },
  clientHeight: { value: 768 },
});
Element.prototype.getBoundingClientRect = () => new DOMRect(8, 8, 120, 24);

afterEach(() => {
  cleanup();
  // The store of notifications is a module's: it would show those of one test in the next.
  notifications.clean();
  notifications.cleanQueue();
});
