import { describeFindings, type Finding } from "@/lib/findings";
import { IconStethoscope } from "@/ui/icons";
import { LinkButton } from "@/ui/LinkButton";
import classes from "./FindingsPanel.module.css";
import type { ChangeSearch } from "./search";
import { isOfEvaluations } from "./seriesGroups";

interface FindingsPanelProps {
  findings: readonly Finding[] | undefined;
  onShow: ChangeSearch;
}

/** What is wrong with the training by its curves, what to try, and the curve that shows it. */
export function FindingsPanel({ findings, onShow }: FindingsPanelProps) {
  if (findings === undefined || findings.length === 0) return null;
  const show = ({ series }: Finding) =>
    isOfEvaluations(series)
      ? onShow({ tab: "evaluations" })
      : onShow({ tab: undefined, q: undefined, focus: series });
  return (
    <section className={classes.panel} aria-label="Health of the training" role="status">
      <h2 className={classes.title}>
        <IconStethoscope size={16} stroke={1.8} />
        {describeFindings(findings)} about this training
      </h2>
      <ul className={classes.list}>
        {findings.map((one) => (
          <li key={one.rule} className={classes.finding}>
            <p className={classes.sentence}>{one.sentence}</p>
            <p className={classes.remedy}>{one.remedy}</p>
            {one.series !== "" && (
              <LinkButton className={classes.show} onClick={() => show(one)}>
                Show <span className={classes.series}>{one.series}</span>
              </LinkButton>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
