import { Button, Modal, Radio } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { disablePerson } from "@/api/people";
import type { JobsOfPerson, PersonDetail, PersonDisabled } from "@/api/types";
import { formatPlural } from "@/lib/format";
import { Refusal } from "@/ui/Refusal";
import classes from "./Person.module.css";
import { PersonSelect } from "./PersonSelect";
import { usePersonAction } from "./usePersonAction";

interface DisableDialogProps {
  person: PersonDetail;
  isCaller: boolean;
  onClose(): void;
}

const CHOICES: { value: JobsOfPerson; label: string; description: string }[] = [
  {
    value: "keep",
    label: "Keep",
    description: "They go on, queued jobs included; members and maintainers see their results.",
  },
  {
    value: "pause",
    label: "Pause",
    description: "Each saves a snapshot and stops; a maintainer may resume it.",
  },
  { value: "cancel", label: "Cancel", description: "They end; what they have stored stays." },
  {
    value: "transfer",
    label: "Transfer",
    description: "They go on, and belong with their runs to another person.",
  },
];

/** Asks before a person is disabled: lists the effects, and offers choices for unfinished jobs. */
export function DisableDialog({ person, isCaller, onClose }: DisableDialogProps) {
  const [jobs, setJobs] = useState<JobsOfPerson>("keep");
  const [receiver, setReceiver] = useState<string | null>(null);
  const transfers = jobs === "transfer";
  const disable = usePersonAction(
    () => disablePerson(person.name, jobs, transfers ? receiver : null),
    (done) => {
      notifications.show({ message: describeDisabling(done, jobs) });
      onClose();
    },
  );
  const live = person.owned.live_jobs;
  return (
    <Modal opened onClose={onClose} title={`Disable ${person.name}?`} size="lg">
      <div className={classes.dialog}>
        <ul>
          <li>
            All logins, tokens and live pages of {person.display_name || person.name} end within
            seconds{isCaller && <b>: this is your own account, and you are logged out</b>}.
          </li>
          <li>Open invitations that {person.name} made are revoked.</li>
          <li>
            Experiments, runs and files stay
            {person.owned.workers > 0
              ? `, and ${formatPlural(person.owned.workers, "worker")} of ${person.name} go on working.`
              : "."}
          </li>
          <li>Enabling the account later makes unexpired tokens valid again.</li>
        </ul>
        {live > 0 && (
          <Radio.Group
            label={`What becomes of ${formatPlural(live, "unfinished job")}?`}
            value={jobs}
            onChange={(chosen) => setJobs(chosen as JobsOfPerson)}
          >
            <div className={classes.choices} style={{ marginTop: 8 }}>
              {CHOICES.map((choice) => (
                <Radio key={choice.value} {...choice} size="xs" />
              ))}
            </div>
          </Radio.Group>
        )}
        {transfers && (
          <PersonSelect
            label="Transfer to"
            except={person.name}
            value={receiver}
            onChange={setReceiver}
          />
        )}
        <Refusal text={disable.error?.message} />
        <div className={classes.buttons}>
          <Button variant="default" onClick={onClose} data-autofocus>
            Keep the account
          </Button>
          <Button
            color="red"
            disabled={transfers && receiver === null}
            loading={disable.isPending}
            onClick={() => disable.mutate()}
          >
            Disable
          </Button>
        </div>
      </div>
    </Modal>
  );
}

function describeDisabling(
  { user, live_jobs, changed_jobs }: PersonDisabled,
  jobs: JobsOfPerson,
): string {
  if (live_jobs === 0) return `${user.name} is disabled.`;
  const ends = { pause: "paused", cancel: "cancelled", transfer: "transferred" };
  return jobs === "keep"
    ? `${user.name} is disabled; ${formatPlural(live_jobs, "unfinished job")} of ${user.name} stay.`
    : `${user.name} is disabled; ${formatPlural(changed_jobs, "job")} ${ends[jobs]}.`;
}
