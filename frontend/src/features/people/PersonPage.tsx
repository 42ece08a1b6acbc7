import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { personQuery } from "@/api/people";
import { sessionQuery } from "@/api/queries";
import type { PersonDetail } from "@/api/types";
import { formatAge, formatCount, formatDay, formatMoment } from "@/lib/format";
import { Facts } from "@/ui/Facts";
import { ListFrame } from "@/ui/ListFrame";
import { Page, Panel } from "@/ui/Page";
import { StateBadge } from "@/ui/StateBadge";
import { AccessPanel } from "./AccessPanel";
import { ManagersOnly } from "./frames";
import classes from "./Person.module.css";
import { ProfileForm } from "./ProfileForm";
import { AdministratorMark } from "./peopleColumns";

/** The page of a person: profile, roles, objects, and the actions of an administrator. */
export function PersonPage({ user }: { user: string }) {
  const query = useQuery(personQuery(user));
  const person = query.data;
  return (
    <Page
      title={person?.display_name || user}
      crumbs={
        <>
          <Link to="/admin/people" search={{}}>
            People
          </Link>
          <span>/</span>
        </>
      }
      facts={person && <Summary person={person} />}
    >
      <ManagersOnly>
        <ListFrame query={query}>{person && <Content person={person} />}</ListFrame>
      </ManagersOnly>
    </Page>
  );
}

function Summary({ person }: { person: PersonDetail }) {
  const used = person.last_used_at;
  return (
    <>
      <span className="mono">{person.name}</span>
      <StateBadge state={person.state} />
      {person.is_admin && <AdministratorMark />}
      <span title={formatMoment(person.created_at)}>since {formatDay(person.created_at)}</span>
      <span title={used === null ? "" : formatMoment(used)}>
        {used === null ? "never used" : `last use ${formatAge(used)}`}
      </span>
      {person.disabled_at && (
        <span title={formatMoment(person.disabled_at)}>
          disabled {formatAge(person.disabled_at)}
        </span>
      )}
    </>
  );
}

function Content({ person }: { person: PersonDetail }) {
  const session = useQuery({ ...sessionQuery, enabled: false }).data;
  const { experiments, runs, jobs, live_jobs, workers } = person.owned;
  return (
    <div className={classes.columns}>
      <div className="stack">
        <ProfileForm person={person} />
        <Panel title="Roles in projects">
          {person.projects.length === 0 ? (
            <p className="muted">
              A member of no project. Maintainers add members on the page of their project.
            </p>
          ) : (
            <Facts
              items={person.projects.map(({ slug, name, role }) => [name || slug, role] as const)}
            />
          )}
        </Panel>
        <Panel title="Submitted and set up">
          <Facts
            items={[
              ["Experiments", formatCount(experiments)],
              ["Runs", formatCount(runs)],
              [
                "Jobs",
                live_jobs > 0
                  ? `${formatCount(jobs)}, ${formatCount(live_jobs)} unfinished`
                  : formatCount(jobs),
              ],
              ["Workers", formatCount(workers)],
            ]}
          />
        </Panel>
      </div>
      <AccessPanel person={person} isCaller={session?.user_id === person.id} />
    </div>
  );
}
