import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";
import { savedViewQuery } from "@/api/savedViews";
import { findQueryError } from "@/lib/outage";
import type { RunsSearch } from "./search";
import { readView } from "./viewState";

/**
 * The view that the URL names. Its state is the base of the page; the board's settings are copied
 * to the URL, where the board reads them.
 */
export function useSavedView(project: string, search: RunsSearch) {
  const id = search.view;
  const navigate = useNavigate();
  const query = useQuery({ ...savedViewQuery(id ?? ""), enabled: id !== undefined });
  const view = id === undefined ? undefined : query.data;
  const base = useMemo(() => (view === undefined ? null : readView(view.usable_state)), [view]);
  const opened = useRef<string | null>(null);
  useEffect(() => {
    if (view === undefined) {
      if (id === undefined) opened.current = null;
      return;
    }
    if (view.id !== id || opened.current === id) return;
    opened.current = id;
    const { board } = view.usable_state;
    if (view.project === project && Object.keys(board).length === 0) return;
    void navigate({
      to: "/p/$project/runs",
      params: { project: view.project },
      search: ((old: RunsSearch) => ({ ...board, ...old })) as never,
      replace: true,
    });
  }, [view, id, project, navigate]);
  return {
    view,
    base,
    isPending: id !== undefined && query.isPending && findQueryError(query) === null,
    problem: id === undefined ? null : findQueryError(query),
  };
}
