import { MultiSelect, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { createPool } from "@/api/pools";
import { projectsQuery } from "@/api/projects";
import { FormDialog } from "@/ui/FormDialog";
import { buildRequest, FIELDS, isComplete, PoolFields, readForm } from "./PoolFields";
import { usePoolRefresh } from "./usePoolRefresh";

/** Creates a pool and opens its page. */
export function CreatePool({ onClose }: { onClose(): void }) {
  const [name, setName] = useState("");
  const [projects, setProjects] = useState<string[]>([]);
  const [form, setForm] = useState(readForm(null));
  const known = useQuery(projectsQuery).data ?? [];
  const navigate = useNavigate();
  const refresh = usePoolRefresh();
  const create = useMutation({
    mutationFn: () => createPool({ name: name.trim(), projects, ...buildRequest(form) }),
    onSuccess: async (pool) => {
      await refresh();
      onClose();
      await navigate({ to: "/admin/pools/$pool", params: { pool: pool.name } });
    },
  });
  return (
    <FormDialog
      opened
      title="New pool"
      submit="Create"
      isPending={create.isPending}
      incomplete={name.trim() === "" || !isComplete(form)}
      problem={findFaultBeside(create.error, FIELDS)}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Workers and jobs name it, so it never changes"
        placeholder="gpu"
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={findFaultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <MultiSelect
        label="Projects"
        description="Only their jobs run in the pool"
        placeholder={projects.length === 0 ? "Choose projects" : ""}
        data={known.map((one) => ({ value: one.slug, label: one.name }))}
        value={projects}
        onChange={setProjects}
        searchable
      />
      <PoolFields form={form} error={create.error} onChange={setForm} />
    </FormDialog>
  );
}
