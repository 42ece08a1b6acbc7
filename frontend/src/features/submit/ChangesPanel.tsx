import { Link } from "@tanstack/react-router";
import { Panel } from "@/ui/Page";
import type { Change } from "./changes";
import classes from "./Submit.module.css";

interface ChangesPanelProps {
  project: string;
  experiment: { id: string; name: string };
  changes: readonly Change[];
}

/** What differs from the experiment from which the form was filled. */
export function ChangesPanel({ project, experiment, changes }: ChangesPanelProps) {
  return (
    <Panel
      title="Changes"
      aside={
        <span className="faint">
          from{" "}
          <Link
            to="/p/$project/experiments/$experimentId"
            params={{ project, experimentId: experiment.id }}
          >
            {experiment.name}
          </Link>
        </span>
      }
    >
      {changes.length === 0 ? (
        <p className="muted">
          Nothing differs yet: it is the same experiment, to which new seeds would be added.
        </p>
      ) : (
        <dl className={classes.changes} data-testid="changes">
          {changes.map(({ place, before, now }) => (
            <div key={place}>
              <dt>{place}</dt>
              <dd>
                <del>{before}</del> {now}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  );
}
