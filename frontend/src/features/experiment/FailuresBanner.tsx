import { Link } from "@tanstack/react-router";
import type { Experiment, ExperimentDetail } from "@/api/types";
import { formatPlural, nameCause } from "@/lib/format";
import { Banner } from "@/ui/Banner";

/** The reasons why runs failed, the most frequent one first. */
export function FailuresBanner({ experiment }: { experiment: Experiment }) {
  const failed = experiment.runs.failed ?? 0;
  if (failed === 0) return null;
  const { failures } = experiment;
  const [only] = failures;
  if (only !== undefined && failures.length === 1) {
    return (
      <Banner
        tone="bad"
        title={`${formatPlural(failed, "run")} failed: ${named(only)}`}
        message={only.message}
      >
        <First project={experiment.project} runId={only.run_id} all={only.runs} />
      </Banner>
    );
  }
  return (
    <Banner tone="bad" title={`${formatPlural(failed, "run")} failed`}>
      <ul>
        {failures.map((one) => (
          <li key={`${one.cause} ${one.message}`}>
            <b>
              {one.runs} × {named(one)}:
            </b>{" "}
            {one.message} <First project={experiment.project} runId={one.run_id} all={one.runs} />
          </li>
        ))}
      </ul>
    </Banner>
  );
}

function named({ cause }: Experiment["failures"][number]): string {
  return cause === null ? "for an unknown reason" : nameCause(cause);
}

function First({ project, runId, all }: { project: string; runId: string; all: number }) {
  return (
    <Link to="/p/$project/runs/$runId" params={{ project, runId }}>
      {all > 1 ? "Look at the first of them" : "Look at the run"}
    </Link>
  );
}

/** Shows warnings about a valid definition. */
export function AdviceBanner({ experiment }: { experiment: ExperimentDetail }) {
  const { warnings = [] } = experiment;
  if (warnings.length === 0) return null;
  return (
    <Banner tone="warn" title="Warnings about the definition">
      <ul>
        {warnings.map((one) => (
          <li key={one.code}>
            <code>{one.pointer.replace(/^\/definition\//, "").replaceAll("/", ".")}</code>{" "}
            {one.message}
          </li>
        ))}
      </ul>
    </Banner>
  );
}
