import { MultiSelect, Textarea, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { createProject, projectKeys } from "@/api/projects";
import { keys } from "@/api/queries";
import { poolsQuery } from "@/api/queueQueries";
import { parseBytes, type Size } from "@/lib/sizes";
import { makeSlug } from "@/lib/slug";
import { FormDialog } from "@/ui/FormDialog";
import { StorageLimit } from "./StorageLimit";

const FIELDS = ["/name", "/slug", "/description", "/storage_limit", "/pools"];

/** Creates a project and opens the page of its members. */
export function CreateProject({ onClose }: { onClose(): void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [slug, setSlug] = useState<string | null>(null);
  const [description, setDescription] = useState("");
  const [limit, setLimit] = useState<Size>({ number: "", unit: "GiB" });
  const [pools, setPools] = useState<string[] | null>(null);
  const known = useQuery(poolsQuery).data?.map((pool) => pool.name) ?? [];
  const byDefault = known.filter((pool) => pool === "default");
  const bytes = parseBytes(limit);
  const create = useMutation({
    mutationFn: () =>
      createProject({ name, slug: slug || null, description, storage_limit: bytes, pools }),
    onSuccess: async (project) => {
      await Promise.all([
        client.invalidateQueries({ queryKey: projectKeys.all }),
        // The caller is a maintainer of the new project.
        client.invalidateQueries({ queryKey: keys.session }),
      ]);
      onClose();
      await navigate({ to: "/p/$project/members", params: { project: project.slug } });
    },
  });
  return (
    <FormDialog
      opened
      title="New project"
      submit="Create"
      isPending={create.isPending}
      incomplete={name.trim() === "" || Number.isNaN(bytes)}
      problem={findFaultBeside(create.error, FIELDS)}
      onSubmit={() => create.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        required
        data-autofocus
        maxLength={64}
        value={name}
        error={findFaultAt(create.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Slug"
        description="Names the project in addresses and commands, and stays when it is renamed"
        placeholder={makeSlug(name) || "made of the name"}
        maxLength={64}
        value={slug ?? ""}
        error={findFaultAt(create.error, "/slug")}
        onChange={(event) => setSlug(event.currentTarget.value)}
      />
      <Textarea
        label="Description"
        rows={2}
        resize="vertical"
        value={description}
        error={findFaultAt(create.error, "/description")}
        onChange={(event) => setDescription(event.currentTarget.value)}
      />
      {known.length > 0 && (
        <MultiSelect
          label="Pools"
          description="Where its jobs may run; administrators can change this later"
          data={known}
          value={pools ?? byDefault}
          error={findFaultAt(create.error, "/pools")}
          onChange={setPools}
        />
      )}
      <StorageLimit
        value={limit}
        onChange={setLimit}
        error={
          Number.isNaN(bytes)
            ? "Write a number, such as 50 or 1.5."
            : findFaultAt(create.error, "/storage_limit")
        }
      />
    </FormDialog>
  );
}
