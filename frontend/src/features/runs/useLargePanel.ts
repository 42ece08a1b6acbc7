import { useLocation, useNavigate, useRouter } from "@tanstack/react-router";
import { useCallback, useEffect, useRef } from "react";
import { type Search, tidy } from "@/lib/search";
import { registerShortcuts } from "@/lib/shortcuts";

/**
 * The name of the panel that has the width of the board, as the URL says it. Escape and the
 * browser's Back make it small again.
 *
 * @param names Panels that are shown.
 * @param chosen The panel of the URL.
 */
export function useLargePanel(
  names: readonly string[],
  chosen: string | undefined,
): [large: string | null, setLarge: (name: string | null) => void] {
  const search = useLocation({ select: (location) => location.search as Search });
  const navigate = useNavigate();
  const { history } = useRouter();
  const latest = useRef(search);
  latest.current = search;
  /** The URL's parameters at which Back arrives; `null` where it leaves the page. */
  const before = useRef<string | null>(null);
  const setLarge = useCallback(
    (name: string | null) => {
      const { large: present, ...others } = latest.current;
      const written = JSON.stringify(others);
      if (name === null && before.current === written) {
        // Another call, before the router has gone back, must not leave the page.
        before.current = null;
        history.back();
        return;
      }
      const isEntry = name !== null && present === undefined;
      before.current = isEntry ? written : before.current;
      void navigate({
        to: ".",
        search: (old: Search) => tidy({ ...old, large: name ?? undefined }),
        replace: !isEntry,
        resetScroll: false,
      } as Parameters<typeof navigate>[0]);
    },
    [navigate, history],
  );
  const large = chosen !== undefined && names.includes(chosen) ? chosen : null;
  const isLarge = large !== null;
  useEffect(() => {
    if (!isLarge) return;
    const run = () => setLarge(null);
    return registerShortcuts([{ keys: "escape", what: "Show the panel small again", run }]);
  }, [isLarge, setLarge]);
  return [large, setLarge];
}
