import { NativeSelect, Skeleton, Switch } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ApiError } from "@/api/client";
import { statisticsQuery } from "@/api/statisticsQueries";
import type { ExperimentDetail, GroupStatistics, Run } from "@/api/types";
import { chooseGroupColor } from "@/lib/color";
import { nameExperiments, shortenExperimentIds } from "@/lib/experimentNames";
import { formatPlural, formatScore, formatValue } from "@/lib/format";
import { findQueryError } from "@/lib/outage";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Panel } from "@/ui/Page";
import { useScheme } from "@/ui/scheme";
import classes from "./FinalScores.module.css";
import {
  buildScoresQuery,
  isRefused,
  isTooLarge,
  LAST_EVALUATIONS,
  selectScores,
} from "./finalScores";
import { ScoreStrip } from "./ScoreStrip";
import type { ChangeSearch, ExperimentSearch } from "./search";

interface FinalScoresProps {
  experiment: ExperimentDetail;
  runs: readonly Run[];
  search: ExperimentSearch;
  change: ChangeSearch;
}

/** The final score of every seed, the best rivals, and whether the seeds are enough. */
export function FinalScores({ experiment, runs, search, change }: FinalScoresProps) {
  const compared = search.rivals !== "hide";
  const last = search.last ?? 1;
  const evaluated = runs.filter((run) => run.latest_evaluation !== null);
  const isOfReturns = experiment.kind === "rl";
  const wide = useQuery({
    ...statisticsQuery(buildScoresQuery(experiment, evaluated, last, true)),
    enabled: compared && isOfReturns && evaluated.length > 0,
  });
  const rivalsLeftOut = isRefused(wide.error);
  const alone = useQuery({
    ...statisticsQuery(buildScoresQuery(experiment, evaluated, last, false)),
    enabled: (!compared || rivalsLeftOut) && isOfReturns && evaluated.length > 0,
  });
  if (!isOfReturns) return null;
  const query = compared && !rivalsLeftOut ? wide : alone;
  const problem = findQueryError(query);
  return (
    <Panel
      title="Final scores"
      aside={
        <>
          <Switch
            label="Rivals"
            title={`The best other experiments on ${experiment.env} in this project`}
            checked={compared}
            onChange={(event) =>
              change({ rivals: event.currentTarget.checked ? undefined : "hide" })
            }
          />
          <NativeSelect
            size="xs"
            aria-label="Score over"
            value={last}
            data={LAST_EVALUATIONS.map((one) => ({
              value: String(one),
              label: one === 1 ? "last evaluation" : `last ${one} evaluations`,
            }))}
            onChange={(event) => {
              const next = Number(event.currentTarget.value);
              change({ last: next === 1 ? undefined : next });
            }}
          />
        </>
      }
    >
      {evaluated.length === 0 ? (
        <EmptyState small title="No score yet">
          A score is the mean over the episodes of a run's last evaluations.
        </EmptyState>
      ) : query.data === undefined ? (
        problem === null ? (
          <Skeleton height={120} />
        ) : (
          <Failure small error={problem as ApiError} retry={() => void query.refetch()} />
        )
      ) : (
        <Scores
          experiment={experiment}
          shown={selectScores(query.data, experiment.id)}
          caption={query.data.method.score}
          notes={[
            ...query.data.notes,
            ...(isTooLarge(wide.error) ? ["There are too many runs to compare with."] : []),
          ]}
        />
      )}
    </Panel>
  );
}

interface ScoresProps {
  experiment: ExperimentDetail;
  shown: ReturnType<typeof selectScores>;
  caption: string;
  notes: readonly string[];
}

function Scores({ experiment, shown, caption, notes }: ScoresProps) {
  const { own, rivals, domain } = shown;
  const advice = own?.advice ?? null;
  const names = shortenExperimentIds(
    (own === null ? rivals : [own, ...rivals]).map((one) => String(one.by.experiment)),
  );
  return (
    <div className={classes.scores}>
      {advice && (
        <p className={classes.advice} data-enough={advice.enough}>
          {nameExperiments(advice.sentence, names)}
        </p>
      )}
      <ul className={classes.rows}>
        {own && <Row group={own} name={experiment.name} domain={domain} isOwn />}
        {rivals.map((one) => (
          <Row
            key={one.name}
            group={one}
            name={names.get(String(one.by.experiment)) ?? ""}
            domain={domain}
            project={experiment.project}
          />
        ))}
      </ul>
      <p className={classes.caption}>
        Score: {caption}. Mark and bar: interquartile mean and its 95 % bootstrap interval over
        seeds.
        {notes.map((note) => ` ${nameExperiments(note, names)}`)}
      </p>
    </div>
  );
}

interface RowProps {
  group: GroupStatistics;
  name: string;
  domain: readonly [number, number];
  isOwn?: boolean;
  project?: string;
}

function Row({ group, name, domain, isOwn = false, project }: RowProps) {
  const scheme = useScheme();
  const id = String(group.by.experiment);
  const { iqm } = group.aggregates;
  const spread = iqm && iqm.low !== null && iqm.high !== null ? (iqm.high - iqm.low) / 2 : null;
  return (
    <li className={classes.row} data-own={isOwn || undefined}>
      <span className="clip" title={id}>
        {project === undefined ? (
          name
        ) : (
          <Link to="/p/$project/experiments/$experimentId" params={{ project, experimentId: id }}>
            {name}
          </Link>
        )}
      </span>
      <ScoreStrip
        scores={group.scores}
        estimate={iqm ?? null}
        domain={domain}
        color={chooseGroupColor(id, scheme)}
      />
      <span className={classes.value} title={describe(group)}>
        <b>{formatScore(iqm?.value, spread)}</b> <span className="faint">n = {group.seeds}</span>
      </span>
    </li>
  );
}

function describe({ scores, aggregates: { iqm } }: GroupStatistics): string {
  const ends =
    iqm && iqm.low !== null && iqm.high !== null
      ? `, interval ${formatValue(iqm.low)} to ${formatValue(iqm.high)}`
      : "";
  return `Interquartile mean over ${formatPlural(scores.length, "run")}${ends}`;
}
