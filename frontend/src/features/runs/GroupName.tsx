import { formatPlural } from "@/lib/format";
import { Dot } from "@/ui/Dot";
import { IconChevronDown, IconChevronRight } from "@/ui/icons";
import { nameGroup } from "./groupKeys";
import classes from "./Runs.module.css";
import type { RunItem } from "./runItems";

interface GroupNameProps {
  item: Extract<RunItem, { kind: "group" }>;
  color: string;
  onToggle(): void;
}

/** The values that the runs of a group share, with the button that shows its runs. */
export function GroupName({ item, color, onToggle }: GroupNameProps) {
  const { group, isOpen } = item;
  const name = nameGroup(group);
  return (
    <span className={classes.group} title={group.name}>
      <button
        type="button"
        className={classes.fold}
        aria-expanded={isOpen}
        aria-label={`Runs of ${name}`}
        onClick={onToggle}
      >
        {isOpen ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
      </button>
      <Dot color={color} />
      <b className="clip">{name}</b>
      <span className="faint">{formatPlural(group.runs, "run")}</span>
    </span>
  );
}
