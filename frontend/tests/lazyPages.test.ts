import { describe, expect, it, vi } from "vitest";
import { lazyPage, loadThroughOutages, preloadPages } from "@/app/lazyPages";

describe("A page that is loaded when it is opened", () => {
  it("is loaded again and again while the server is away", async () => {
    vi.useFakeTimers();
    vi.stubGlobal("fetch", vi.fn().mockRejectedValue(new TypeError("Failed to fetch")));
    const load = vi
      .fn<() => Promise<string>>()
      .mockRejectedValueOnce(new TypeError("1"))
      .mockRejectedValueOnce(new TypeError("2"))
      .mockResolvedValue("page");
    const loaded = loadThroughOutages(load);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await loaded).toBe("page");
    expect(load).toHaveBeenCalledTimes(3);
  });

  it("is loaded before it is opened, once the page that is shown has all it needs", async () => {
    vi.useFakeTimers();
    const load = vi.fn().mockResolvedValue({ default: () => null });
    lazyPage(load);
    let busy = true;
    const loaded = preloadPages(() => busy, new AbortController().signal);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(load).not.toHaveBeenCalled();
    busy = false;
    // Where another test has made the router, its pages come first, at the speed of the disk.
    vi.setTimerTickMode("nextTimerAsync");
    await loaded;
    expect(load).toHaveBeenCalledTimes(1);
  });

  it("is not loaded any more once the dashboard is closed", async () => {
    vi.useFakeTimers();
    const load = vi.fn().mockResolvedValue({ default: () => null });
    lazyPage(load);
    const closed = new AbortController();
    const loaded = preloadPages(() => true, closed.signal);
    await vi.advanceTimersByTimeAsync(5_000);
    closed.abort();
    await vi.advanceTimersByTimeAsync(1_000);
    await loaded;
    expect(load).not.toHaveBeenCalled();
  });

  it("fails where the server answers and the page is not there", async () => {
    vi.stubGlobal("fetch", vi.fn().mockResolvedValue(new Response("ok")));
    const load = vi.fn<() => Promise<string>>().mockRejectedValue(new TypeError("gone"));
    await expect(loadThroughOutages(load)).rejects.toThrow("gone");
    expect(load).toHaveBeenCalledTimes(2);
  });
});
