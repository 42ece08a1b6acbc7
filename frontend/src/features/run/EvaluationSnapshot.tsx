import { getRouteApi, Link } from "@tanstack/react-router";
import { archiveAddress } from "@/api/queries";
import type { Evaluation, Snapshot } from "@/api/types";
import { formatBytes, shortenId } from "@/lib/format";
import { CopyButton } from "@/ui/Copy";
import classes from "./EvaluationDrawer.module.css";

const route = getRouteApi("/inside/p/$project/runs/$runId");

interface EvaluationSnapshotProps {
  evaluation: Evaluation;
  snapshot: Snapshot | null;
  loading: boolean;
}

/** The snapshot of the evaluated state, its files, and how to evaluate it again. */
export function EvaluationSnapshot({ evaluation, snapshot, loading }: EvaluationSnapshotProps) {
  const params = route.useParams();
  if (snapshot === null) {
    return loading ? null : (
      <p className={classes.remark}>
        {evaluation.snapshot_id === null
          ? "The training wrote no snapshot at this step, or it was deleted since."
          : "The evaluated snapshot was deleted since."}
      </p>
    );
  }
  const stored = snapshot.state === "verified";
  return (
    <div className={classes.snapshot}>
      <span>
        Snapshot <code title={snapshot.id}>{shortenId(snapshot.id)}</code>
        <CopyButton text={snapshot.id} label="Copy the snapshot's ID" />
      </span>
      {snapshot.best && <span className="faint">best</span>}
      <span className="faint">
        {stored ? formatBytes(snapshot.size) : snapshot.state},{" "}
        {snapshot.resume_exact ? "resumes exactly" : "resumes statistically"}
      </span>
      <Link to="/p/$project/runs/$runId" params={params} search={{ tab: "files" }}>
        Files
      </Link>
      {stored && (
        <a href={archiveAddress(snapshot)} download>
          Download ZIP
        </a>
      )}
    </div>
  );
}
