import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { PlotSource } from "@/charts";
import { buildPanelPlot, type PanelLook, type PanelPlot } from "./panelPlot";
import type { PanelState, PanelStore } from "./panelStore";

interface ShownPanel {
  state: PanelState;
  plot: PanelPlot | null;
  source: PlotSource;
}

/** A panel's curves, and the source from which its chart draws them without another rendering. */
export function usePanelPlot(store: PanelStore, name: string, look: PanelLook): ShownPanel {
  const state = useSyncExternalStore(
    (listener) => store.watch(name, listener),
    () => store.state(name),
  );
  const { curves } = state;
  const plot = useMemo(
    () => (curves === null || curves.grid.length === 0 ? null : buildPanelPlot(curves, look)),
    [curves, look],
  );
  const latest = useRef(plot);
  latest.current = plot;
  const drawn = useRef<PanelPlot | null>(null);
  const painters = useRef(new Set<() => void>());
  const source = useMemo<PlotSource>(
    () => ({
      read: () => {
        drawn.current = latest.current;
        return latest.current ?? { data: [[]], points: 0 };
      },
      watch: (paint) => {
        painters.current.add(paint);
        return () => painters.current.delete(paint);
      },
    }),
    [],
  );
  useEffect(() => {
    // A chart that was made with this rendering has read the plot already.
    if (plot !== null && drawn.current !== plot) for (const paint of painters.current) paint();
  }, [plot]);
  return { state, plot, source };
}
