import { IconChevronDown, IconChevronRight } from "./icons";
import classes from "./SectionTitle.module.css";

interface SectionTitleProps {
  title: string;
  /** Number of charts in the section. */
  count: number;
  isOpen: boolean;
  onToggle(): void;
}

/** The title of a section of charts, which folds it. */
export function SectionTitle({ title, count, isOpen, onToggle }: SectionTitleProps) {
  const Icon = isOpen ? IconChevronDown : IconChevronRight;
  return (
    <button type="button" className={classes.title} aria-expanded={isOpen} onClick={onToggle}>
      <Icon size={14} />
      {title} <span className="faint">{count}</span>
    </button>
  );
}
