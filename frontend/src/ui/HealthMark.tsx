import type { Finding } from "@/lib/findings";
import { describeFindings } from "@/lib/findings";
import classes from "./HealthMark.module.css";
import { IconStethoscope } from "./icons";

/** Marks a run in a list whose training has findings; shows nothing where there are none. */
export function HealthMark({ findings }: { findings: readonly Finding[] | undefined }) {
  if (findings === undefined || findings.length === 0) return null;
  return (
    <span className={classes.mark} title={findings.map((one) => one.sentence).join("\n")}>
      <IconStethoscope size={14} stroke={2} aria-hidden="true" />
      {findings.length > 1 && <span aria-hidden="true">{findings.length}</span>}
      <span className="hidden-visually">{describeFindings(findings)}</span>
    </span>
  );
}
