import { ActionIcon, Menu } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useControl } from "@/api/access";
import type { Job, PriorityClass } from "@/api/types";
import {
  IconAdjustmentsHorizontal,
  IconArrowBarToDown,
  IconArrowBarToUp,
  IconArrowDown,
  IconArrowUp,
  IconBan,
  IconDots,
  IconPlayerPause,
} from "@/ui/icons";
import type { Move } from "./ownOrder";

export interface WaitingMenuProps {
  job: Job;
  moves: Partial<Record<"front" | "up" | "down" | "end", Move>>;
  onMove(job: Job, move: Move): void;
  onChange(job: Job): void;
  onPause(job: Job): void;
  onCancel(job: Job): void;
}

const WAYS = [
  ["front", "To the front of the person's jobs", IconArrowBarToUp],
  ["up", "Move up", IconArrowUp],
  ["down", "Move down", IconArrowDown],
  ["end", "To the end of the person's jobs", IconArrowBarToDown],
] as const;

/** Classes in words: what they are for. */
export const CLASS_HINTS: Record<PriorityClass, string> = {
  interactive: "at most 30 minutes, one per person",
  urgent: "for maintainers",
  normal: "the default",
  idle: "uses what no other class needs",
};

/**
 * A button for what can be done with a waiting job. The menu is made once it is opened, since a
 * list has many rows.
 */
export function WaitingMenu(props: WaitingMenuProps) {
  const [isUsed, setIsUsed] = useState(false);
  if (isUsed) return <OpenedMenu {...props} />;
  return (
    <ActionIcon
      size={26}
      aria-label={`Actions of job ${props.job.id}`}
      aria-haspopup="menu"
      onClick={() => setIsUsed(true)}
    >
      <IconDots size={16} />
    </ActionIcon>
  );
}

/** What can be done with a waiting job, also by keyboard. */
function OpenedMenu(props: WaitingMenuProps) {
  const { job, moves } = props;
  const { reason } = useControl()(job, "change this job");
  const disabled = reason !== null || job.state !== "queued";
  const [opened, setOpened] = useState(false);
  const target = useRef<HTMLButtonElement>(null);
  // The button replaced the one that was clicked, and has the focus to which the menu returns.
  useEffect(() => {
    target.current?.focus();
    setOpened(true);
  }, []);
  return (
    <Menu withinPortal width={270} opened={opened} onChange={setOpened}>
      <Menu.Target>
        <ActionIcon ref={target} size={26} aria-label={`Actions of job ${job.id}`}>
          <IconDots size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {reason !== null && <Menu.Label style={{ whiteSpace: "normal" }}>{reason}</Menu.Label>}
        {WAYS.map(([way, label, Icon]) => {
          const move = moves[way];
          return (
            <Menu.Item
              key={way}
              leftSection={<Icon size={14} />}
              disabled={disabled || move === undefined}
              onClick={() => move && props.onMove(job, move)}
            >
              {label}
            </Menu.Item>
          );
        })}
        <Menu.Divider />
        <Menu.Item
          leftSection={<IconAdjustmentsHorizontal size={14} />}
          disabled={disabled}
          onClick={() => props.onChange(job)}
        >
          Change class or limits…
        </Menu.Item>
        <Menu.Item
          leftSection={<IconPlayerPause size={14} />}
          disabled={disabled}
          onClick={() => props.onPause(job)}
        >
          Pause
        </Menu.Item>
        <Menu.Item
          color="red"
          leftSection={<IconBan size={14} />}
          disabled={reason !== null}
          onClick={() => props.onCancel(job)}
        >
          Cancel
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
