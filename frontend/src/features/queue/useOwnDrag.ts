import { useState } from "react";
import type { Job } from "@/api/types";
import { type Move, type OwnOrder, planDrop } from "./ownOrder";
import type { RowDrag } from "./WaitingRow";

type Half = "upper" | "lower";

/** Dragging of waiting jobs among the jobs of the same person, project and class. */
export function useOwnDrag(
  order: OwnOrder,
  mayControl: (job: Job) => boolean,
  onMove: (job: Job, move: Move) => void,
) {
  const [dragged, setDragged] = useState<Job | null>(null);
  const [over, setOver] = useState<{ id: string; half: Half } | null>(null);
  const end = () => {
    setDragged(null);
    setOver(null);
  };
  const bind = (job: Job): RowDrag => ({
    enabled: job.state === "queued" && mayControl(job),
    mark: over?.id === job.id ? over.half : undefined,
    isDragged: dragged?.id === job.id,
    onStart: setDragged,
    onOver: (target, half) => {
      const isPossible = dragged !== null && planDrop(order, dragged, target, half) !== null;
      const next = isPossible ? { id: target.id, half } : null;
      if (next?.id !== over?.id || next?.half !== over?.half) setOver(next);
      return isPossible;
    },
    onDrop: (target) => {
      const move = dragged && over?.id === target.id && planDrop(order, dragged, target, over.half);
      if (dragged && move) onMove(dragged, move);
      end();
    },
    onEnd: end,
  });
  return { bind };
}
