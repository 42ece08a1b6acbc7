import { useLocation, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { type Search, tidy } from "@/lib/search";
import { type BoardSearch, type ChangeBoard, readBoardSearch } from "./boardSearch";

/** The board's members of the URL, and a function that changes some of them. */
export function useBoardSearch(): [BoardSearch, ChangeBoard] {
  const raw = useLocation({ select: (location) => location.search as Search });
  const navigate = useNavigate();
  const search = useMemo(() => readBoardSearch(raw), [raw]);
  const change: ChangeBoard = useCallback(
    (part) =>
      void navigate({
        to: ".",
        search: (before: Search) => tidy({ ...before, ...part }),
        replace: true,
        resetScroll: false,
      } as Parameters<typeof navigate>[0]),
    [navigate],
  );
  return [search, change];
}
