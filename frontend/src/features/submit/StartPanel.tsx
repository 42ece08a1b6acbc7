import { Button, Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { SubmissionPreview } from "@/api/types";
import { capitalize, formatPlural } from "@/lib/format";
import { formatSeeds } from "@/lib/seeds";
import { IconAlertTriangle, IconPlayerPlay } from "@/ui/icons";
import { Message } from "@/ui/Message";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { describePlace, type Fault } from "./faults";
import classes from "./Submit.module.css";

interface StartPanelProps {
  project: string;
  preview: SubmissionPreview | undefined;
  faults: readonly Fault[];
  seeds: number;
  /** The server has not yet answered about the newest change. */
  isChecking: boolean;
  isSending: boolean;
  /** Why nothing can be sent now. */
  reason: string | null;
  onSubmit(): void;
}

/** When the submission would start, what is wrong with it, and the button that sends it. */
export function StartPanel(props: StartPanelProps) {
  const { preview, faults, isChecking, isSending, reason } = props;
  return (
    <Panel title="Start" aside={<span className="faint">{isChecking ? "Checking…" : ""}</span>}>
      <div className={classes.start}>
        <div aria-live="polite" className={classes.said}>
          {reason !== null ? (
            <p className={classes.fault}>{reason}</p>
          ) : faults.length > 0 ? (
            <Faults faults={faults} />
          ) : preview ? (
            <Preview project={props.project} preview={preview} />
          ) : (
            isChecking && <Skeleton height={14} width="70%" aria-busy="true" />
          )}
        </div>
        <Permitted reason={reason}>
          <Button
            size="sm"
            fullWidth
            loading={isSending}
            leftSection={<IconPlayerPlay size={15} />}
            onClick={props.onSubmit}
          >
            Submit {formatPlural(props.seeds, "run")}
          </Button>
        </Permitted>
      </div>
    </Panel>
  );
}

function Preview({ project, preview }: { project: string; preview: SubmissionPreview }) {
  const { exists, seeds, seeds_there: there, jobs, experiment_id: id } = preview;
  return (
    <>
      <p className={classes.sentence}>
        <Message text={preview.sentence} />
      </p>
      {seeds.length > 0 && (
        <p className="muted">
          {formatPlural(seeds.length, "run")} in {formatPlural(jobs, "job")} of the pool{" "}
          {preview.pool}
        </p>
      )}
      {exists && (
        <p className="muted">
          <Link to="/p/$project/experiments/$experimentId" params={{ project, experimentId: id }}>
            This experiment
          </Link>{" "}
          exists already
          {there.length > 0 &&
            `, with ${there.length === 1 ? "seed" : "seeds"} ${formatSeeds(there)}`}
          : only what it lacks is added.
        </p>
      )}
      {preview.warnings.map((warning) => (
        <p key={`${warning.pointer} ${warning.code}`} className={classes.warning}>
          <IconAlertTriangle size={14} />
          <span>
            <Message text={capitalize(warning.message)} />
          </span>
        </p>
      ))}
    </>
  );
}

function Faults({ faults }: { faults: readonly Fault[] }) {
  return (
    <div className={classes.faults} role="alert">
      <b>
        {faults.length === 1
          ? "This has to change first"
          : `${faults.length} things have to change first`}
      </b>
      <ul>
        {faults.map((fault) => (
          <li key={`${fault.pointer} ${fault.message}`}>
            {fault.pointer && <code>{describePlace(fault.pointer)}</code>}{" "}
            <Message text={fault.pointer ? fault.message : capitalize(fault.message)} />
          </li>
        ))}
      </ul>
    </div>
  );
}
