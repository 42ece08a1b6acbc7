import { Radio, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { findFaultAt, findFaultBeside } from "@/api/client";
import { changeView, saveView } from "@/api/savedViews";
import type { RunsPageState, SavedViewDetail, ViewVisibility } from "@/api/types";
import { FormDialog } from "@/ui/FormDialog";

interface ViewDialogProps {
  project: string;
  /** The view whose name or visibility is changed; without one a new view is saved. */
  view: SavedViewDetail | undefined;
  state(): Partial<RunsPageState>;
  onDone(saved: SavedViewDetail): Promise<void>;
  onClose(): void;
}

/** Asks for the name of a view, and for whom it is. */
export function ViewDialog({ project, view, state, onDone, onClose }: ViewDialogProps) {
  const [name, setName] = useState(view?.name ?? "");
  const [visibility, setVisibility] = useState<ViewVisibility>(view?.visibility ?? "private");
  const save = useMutation({
    mutationFn: () =>
      view === undefined
        ? saveView(project, { name: name.trim(), visibility, state: state() })
        : changeView(view.id, { name: name.trim(), visibility }),
    onSuccess: onDone,
  });
  return (
    <FormDialog
      opened
      title={view === undefined ? "Save this view" : `Rename or share ${view.name}`}
      submit={view === undefined ? "Save the view" : "Save"}
      incomplete={name.trim() === ""}
      isPending={save.isPending}
      problem={findFaultBeside(save.error, ["/name"])}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        data-autofocus
        autoComplete="off"
        maxLength={64}
        value={name}
        error={findFaultAt(save.error, "/name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Radio.Group
        label="For whom"
        value={visibility}
        onChange={(value) => setVisibility(value as ViewVisibility)}
      >
        <Radio value="private" label="For me alone" mt={6} />
        <Radio value="project" label={`For all members of ${project}`} mt={8} />
      </Radio.Group>
    </FormDialog>
  );
}
