import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { findFaultBeside } from "@/api/client";
import { changePool, deletePool } from "@/api/pools";
import type { Pool } from "@/api/types";
import { ConfirmDialog } from "@/ui/ConfirmDialog";
import { IconTrash } from "@/ui/icons";
import { Panel } from "@/ui/Page";
import { Refusal } from "@/ui/Refusal";
import { buildRequest, FIELDS, isComplete, PoolFields, readForm } from "./PoolFields";
import classes from "./Pools.module.css";
import { usePoolRefresh } from "./usePoolRefresh";

/** Changes the settings of a pool, and deletes it. */
export function PoolSettings({ pool }: { pool: Pool }) {
  const [form, setForm] = useState(readForm(pool));
  const [deleting, setDeleting] = useState(false);
  const refresh = usePoolRefresh();
  const change = useMutation({
    mutationFn: () => changePool(pool.name, buildRequest(form)),
    onSuccess: async () => {
      await refresh();
      notifications.show({ message: "Saved" });
    },
  });
  const isChanged = JSON.stringify(form) !== JSON.stringify(readForm(pool));
  const problem = findFaultBeside(change.error, FIELDS);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isChanged && isComplete(form)) change.mutate();
  };
  return (
    <Panel title="Settings">
      <form className={classes.form} onSubmit={submit}>
        <PoolFields form={form} error={change.error} onChange={setForm} />
        <Refusal text={problem} />
        <Button type="submit" loading={change.isPending} disabled={!isChanged || !isComplete(form)}>
          Save
        </Button>
      </form>
      <div className={classes.deed}>
        <p>A pool can be deleted once its workers are stopped and all its jobs have ended.</p>
        <Button
          variant="default"
          leftSection={<IconTrash size={14} />}
          onClick={() => setDeleting(true)}
        >
          Delete…
        </Button>
      </div>
      {deleting && <DeletePool name={pool.name} onClose={() => setDeleting(false)} />}
    </Panel>
  );
}

function DeletePool({ name, onClose }: { name: string; onClose(): void }) {
  const navigate = useNavigate();
  const refresh = usePoolRefresh();
  return (
    <ConfirmDialog
      title={`Delete the pool ${name}?`}
      submit="Delete"
      act={() => deletePool(name)}
      onDone={() => navigate({ to: "/admin/pools" }).then(refresh)}
      onClose={onClose}
    >
      <p>
        Its enrolment tokens and the secrets of its workers end. Runs that trained in it keep what
        they have.
      </p>
    </ConfirmDialog>
  );
}
