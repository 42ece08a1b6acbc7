import { Button, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import type { Right } from "@/api/access";
import { findFaultAt, findFaultBeside } from "@/api/client";
import type { Project } from "@/api/types";
import { Panel } from "@/ui/Page";
import { Permitted } from "@/ui/Permitted";
import { Refusal } from "@/ui/Refusal";
import classes from "./Projects.module.css";
import { useProjectChange } from "./useProjectChange";

/** Properties of a field that the caller may read but not change. */
const LOCKED = { readOnly: true, variant: "filled" };
const FIELDS = ["/name", "/description"];

/** The project's name, slug and description. */
export function GeneralSettings({ project, right }: { project: Project; right: Right }) {
  const [name, setName] = useState(project.name);
  const [description, setDescription] = useState(project.description);
  const change = useProjectChange(project.slug);
  const isChanged = name.trim() !== project.name || description !== project.description;
  const problem = findFaultBeside(change.error, FIELDS);
  const locked = right.allowed ? {} : LOCKED;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (right.allowed && isChanged) change.mutate({ name, description });
  };
  return (
    <Panel title="General">
      <form className={classes.form} onSubmit={submit}>
        <TextInput
          label="Name"
          required
          maxLength={64}
          {...locked}
          value={name}
          error={findFaultAt(change.error, "/name")}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label="Slug"
          description="Names the project in addresses and commands, and never changes"
          readOnly
          variant="filled"
          value={project.slug}
        />
        <Textarea
          label="Description"
          rows={3}
          resize="vertical"
          {...locked}
          value={description}
          error={findFaultAt(change.error, "/description")}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <Refusal text={problem} />
        <Permitted reason={right.reason}>
          <Button type="submit" loading={change.isPending} disabled={right.allowed && !isChanged}>
            Save
          </Button>
        </Permitted>
      </form>
    </Panel>
  );
}
