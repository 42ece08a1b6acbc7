import { Checkbox, Select, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { findFaultBeside } from "@/api/client";
import { changeQuotas, quotasQuery } from "@/api/quotas";
import type { ProjectQuotas, Quota, QuotaChange, QuotaState } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { usePoolRefresh } from "./usePoolRefresh";

const PROJECT = "/project";
const EACH_PERSON = "/each person";
/** Login names have no slash, so these two are never the name of a person. */
const MEMBERS = ["queued", "running", "device_hours"] as const;
type Member = (typeof MEMBERS)[number];
type Typed = Record<Member, string>;

const LABELS: Record<Member, [label: string, description: string]> = {
  queued: ["Waiting jobs", "A submission beyond it is refused"],
  running: ["Running jobs", "Further ones wait"],
  device_hours: ["Device-hours in 7 days", "Once they are used, jobs wait; running ones go on"],
};

interface QuotaDialogProps {
  pool: string;
  project: string;
  onClose(): void;
}

/** Sets the limits of a project, of each of its persons, or of one of them. */
export function QuotaDialog({ pool, project, onClose }: QuotaDialogProps) {
  const { data } = useQuery(quotasQuery(pool, project));
  return data === undefined ? null : <QuotaForm quotas={data} onClose={onClose} />;
}

function QuotaForm({ quotas, onClose }: { quotas: ProjectQuotas; onClose(): void }) {
  const [subject, setSubject] = useState(PROJECT);
  const [typed, setTyped] = useState(readTyped(findLimits(quotas, PROJECT)));
  const [asEach, setAsEach] = useState(false);
  const refresh = usePoolRefresh();
  const change = useMutation({
    mutationFn: () =>
      changeQuotas(quotas.pool, quotas.project, buildChange(subject, asEach ? null : typed)),
    onSuccess: async () => {
      await refresh();
      notifications.show({ message: "Saved" });
      onClose();
    },
  });
  const choose = (chosen: string) => {
    setSubject(chosen);
    setTyped(readTyped(findLimits(quotas, chosen)));
    setAsEach(quotas.persons.some((one) => one.user === chosen && !one.has_own_limits));
  };
  const isPerson = subject !== PROJECT && subject !== EACH_PERSON;
  const state = findState(quotas, subject);
  return (
    <FormDialog
      opened
      title={`Quotas of ${quotas.project} in ${quotas.pool}`}
      submit="Save"
      incomplete={!asEach && MEMBERS.some((member) => Number.isNaN(parseLimit(member, typed)))}
      isPending={change.isPending}
      problem={findFaultBeside(change.error, [])}
      onSubmit={() => change.mutate()}
      onClose={onClose}
    >
      <Select
        label="Limits of"
        allowDeselect={false}
        data={[
          { value: PROJECT, label: "The project with all its persons" },
          { value: EACH_PERSON, label: "Each person" },
          ...quotas.persons.map((one) => ({
            value: one.user,
            label: one.has_own_limits ? `${one.user} (own limits)` : one.user,
          })),
        ]}
        value={subject}
        onChange={(value) => value !== null && choose(value)}
      />
      {isPerson && (
        <Checkbox
          label="The same as each person"
          checked={asEach}
          onChange={(event) => setAsEach(event.currentTarget.checked)}
        />
      )}
      {MEMBERS.map((member) => (
        <TextInput
          key={member}
          label={LABELS[member][0]}
          description={describe(member, state)}
          placeholder="No limit"
          inputMode="decimal"
          disabled={isPerson && asEach}
          value={typed[member]}
          error={Number.isNaN(parseLimit(member, typed)) && "Write a number, or nothing."}
          onChange={(event) => setTyped({ ...typed, [member]: event.currentTarget.value })}
        />
      ))}
    </FormDialog>
  );
}

function describe(member: Member, state: QuotaState | null): string {
  const [, text] = LABELS[member];
  if (state === null) return text;
  const used = state.used[member];
  return `${text}. Now ${member === "device_hours" ? used.toFixed(1) : used}`;
}

function findState(quotas: ProjectQuotas, subject: string): QuotaState | null {
  if (subject === PROJECT) return quotas.of_project;
  return quotas.persons.find((one) => one.user === subject) ?? null;
}

function findLimits(quotas: ProjectQuotas, subject: string): Quota {
  return findState(quotas, subject)?.limits ?? quotas.each_person;
}

function readTyped(limits: Quota): Typed {
  const write = (limit: number | null) => (limit === null ? "" : String(limit));
  return {
    queued: write(limits.queued),
    running: write(limits.running),
    device_hours: write(limits.device_hours),
  };
}

/** Returns the number of a field, `null` for an empty one, NaN for anything else. */
function parseLimit(member: Member, typed: Typed): number | null {
  const text = typed[member].trim().replace(",", ".");
  if (text === "") return null;
  const limit = Number(text);
  const isWhole = member === "device_hours" || Number.isInteger(limit);
  return Number.isFinite(limit) && limit >= 0 && isWhole ? limit : Number.NaN;
}

/** Makes the request; without `typed` a person has the limits of each person. */
function buildChange(subject: string, typed: Typed | null): QuotaChange {
  const limits = typed && {
    queued: parseLimit("queued", typed),
    running: parseLimit("running", typed),
    device_hours: parseLimit("device_hours", typed),
  };
  if (subject === PROJECT) return { project: limits };
  if (subject === EACH_PERSON) return { each_person: limits };
  return { persons: { [subject]: limits } };
}
