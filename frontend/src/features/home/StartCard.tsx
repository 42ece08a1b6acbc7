import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { chooseFirstProject, usePermission } from "@/api/access";
import { sessionQuery } from "@/api/queries";
import type { Worker } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { getPublicPath, getServerAddress } from "@/lib/publicPath";
import { CodeBlock } from "@/ui/Copy";
import { IconCheck } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import classes from "./Home.module.css";

/** Three steps from an empty server to a live curve. */
export function StartCard({ workers }: { workers: readonly Worker[] }) {
  const session = useQuery(sessionQuery).data;
  const slots = workers
    .filter((worker) => worker.state === "online")
    .reduce((sum, worker) => sum + worker.slots.length, 0);
  const project =
    session === undefined
      ? null
      : (chooseFirstProject(session) ?? session.projects[0]?.slug ?? null);
  const isReady = slots > 0;
  return (
    <Panel title="From here to your first curve">
      <ol className={classes.steps}>
        <Step number={1} title="A worker is there" isDone={isReady} isNext={!isReady}>
          {isReady ? (
            <p className="muted">
              {formatPlural(workers.filter((one) => one.state === "online").length, "worker")} with{" "}
              {formatPlural(slots, "slot")} can train.
            </p>
          ) : (
            <NoWorker />
          )}
        </Step>
        <Step number={2} title="Make an experiment" isDone={false} isNext={isReady}>
          <p className="muted">
            Choose an environment, an agent and seeds. What you submit waits in the queue until a
            slot is free.
          </p>
          {project !== null && (
            <Button
              component="a"
              href={`${getPublicPath()}/p/${encodeURIComponent(project)}/new`}
              variant={isReady ? "filled" : "default"}
            >
              New experiment
            </Button>
          )}
        </Step>
        <Step number={3} title="Watch the curve" isDone={false} isNext={false}>
          <p className="muted">
            This page then shows your run while it trains. Click on it: its curves grow with every
            episode.
          </p>
        </Step>
      </ol>
    </Panel>
  );
}

interface StepProps {
  number: number;
  title: string;
  isDone: boolean;
  isNext: boolean;
  children: ReactNode;
}

function Step({ number, title, isDone, isNext, children }: StepProps) {
  const state = isDone ? "done" : isNext ? "next" : "later";
  return (
    <li className={classes.step} data-state={state}>
      <span className={classes.stepNumber} aria-hidden="true">
        {isDone ? <IconCheck size={16} stroke={2.4} /> : number}
      </span>
      <div className={classes.stepText}>
        <h3>
          {title}
          {isDone && <span className="hidden-visually"> (done)</span>}
        </h3>
        {children}
      </div>
    </li>
  );
}

function NoWorker() {
  const manager = usePermission("server.pools");
  if (!manager.allowed)
    return (
      <p className="muted">
        No worker is online. Ask an administrator of the server to start one; you can submit
        meanwhile.
      </p>
    );
  return (
    <>
      <p className="muted">
        Make an enrolment token under <Link to="/admin/pools">Pools</Link>, write it to a file, and
        run this on a machine that reaches the server:
      </p>
      <CodeBlock
        text={`palestra worker --server ${getServerAddress()} --token-file worker.token --slots 2`}
      />
    </>
  );
}
