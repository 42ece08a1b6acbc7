import { Select, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { createEnrolmentToken } from "@/api/pools";
import type { EnrolmentToken } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";
import { usePoolRefresh } from "./usePoolRefresh";

const NEVER = "never";
const LIFETIMES = [
  { value: "1", label: "1 day" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: NEVER, label: "never: for machines that enrol by themselves" },
];

interface CreateEnrolmentProps {
  pool: string;
  onClose(): void;
  onCreated(token: EnrolmentToken): void;
}

/** Creates a token with which workers enrol in a pool. */
export function CreateEnrolment({ pool, onClose, onCreated }: CreateEnrolmentProps) {
  const [name, setName] = useState("");
  const [days, setDays] = useState("30");
  const refresh = usePoolRefresh();
  const create = useMutation({
    mutationFn: () => createEnrolmentToken(pool, name.trim(), days === NEVER ? null : Number(days)),
    onSuccess: async (token) => {
      onClose();
      onCreated(token);
      await refresh();
    },
  });
  return (
    <FormDialog
      opened
      title={`New enrolment token of the pool ${pool}`}
      submit="Create"
      isPending={create.isPending}
      incomplete={name.trim() === ""}
      problem={findFaultBeside(create.error, ["/name", "/expires_in_days"])}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="For example the machines that enrol with it"
        placeholder="rack 3"
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={findFaultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Select
        label="Ends after"
        description="Workers that are enrolled by then keep working"
        data={LIFETIMES}
        value={days}
        allowDeselect={false}
        error={findFaultAt(create.error, "/expires_in_days")}
        onChange={(chosen) => chosen && setDays(chosen)}
      />
    </FormDialog>
  );
}
