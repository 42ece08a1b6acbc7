import { Button, Skeleton, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { usePermission } from "@/api/access";
import type { ApiError } from "@/api/client";
import { catalogueQuery } from "@/api/submissions";
import { EmptyState } from "@/ui/EmptyState";
import { Failure } from "@/ui/Failure";
import { Page, Panel } from "@/ui/Page";
import { showUndo } from "@/ui/undoNotification";
import { ChangesPanel } from "./ChangesPanel";
import { listChanges } from "./changes";
import { listLeft, listStaying, putBack, readEnvironment, removeStaying } from "./environment";
import { findFault } from "./faults";
import { FormContext, type FormerEnvironment, useForm, useMember } from "./form";
import { PresetSelect } from "./PresetSelect";
import { StartPanel } from "./StartPanel";
import classes from "./Submit.module.css";
import { Sections } from "./sections";
import { readMember, readText, wrapDefinition } from "./text";
import { type DraftState, useDraft } from "./useDraft";
import { type Origin, useOrigin } from "./useOrigin";
import { useSubmission } from "./useSubmission";
import { YamlPanel } from "./YamlPanel";

const route = getRouteApi("/inside/p/$project/new");

/** The page on which an experiment is defined and submitted. */
export function NewExperimentPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const { reason } = usePermission("run.submit", project);
  const { origin, problem, retry } = useOrigin(project, search);
  const title = search.from === undefined ? "New experiment" : "Clone with changes";
  const crumbs = (
    <Link to="/p/$project/experiments" params={{ project }}>
      Experiments
    </Link>
  );
  if (reason !== null || origin === null) {
    return (
      <Page title={title} crumbs={crumbs}>
        <Panel>
          {reason !== null ? (
            <EmptyState title="You may not submit here">{reason}</EmptyState>
          ) : problem !== null ? (
            <Failure error={problem as ApiError} retry={retry} />
          ) : (
            <Skeleton height={420} aria-busy="true" />
          )}
        </Panel>
      </Page>
    );
  }
  return (
    <Page title={title} crumbs={crumbs}>
      <Editor key={`${project} ${origin.source}`} project={project} origin={origin} />
    </Page>
  );
}

function Editor({ project, origin }: { project: string; origin: Origin }) {
  const draft = useDraft(project, origin.source, origin.text);
  const submission = useSubmission(project, draft);
  const [preset, setPreset] = useState(draft.isRestored ? null : origin.preset);
  const page = useRef<HTMLDivElement>(null);
  const pool = String(readMember(draft.document, ["options", "pool"]) ?? "default");
  const { data: catalogue } = useQuery(catalogueQuery(pool));
  const { document, change } = draft;
  const { faults } = submission;
  const isFrozen = draft.reading.document === null;
  const environment = useFormerEnvironment(draft);
  const form = useMemo(
    () => ({
      root: origin.schema,
      document,
      faults,
      isFrozen,
      catalogue: catalogue ?? null,
      change,
      environment,
    }),
    [origin.schema, document, faults, isFrozen, catalogue, change, environment],
  );
  const restart = (text: string, name: string | null) => {
    draft.restart(text);
    setPreset(name);
  };
  const choose = (next: Origin["presets"][number]) => {
    const before = { ...draft, preset };
    const wasChanged = draft.isChanged;
    restart(next.document, next.name);
    if (wasChanged)
      showUndo("Your changes were replaced by the preset", () => {
        draft.restart(before.origin, before);
        setPreset(before.preset);
      });
  };
  const send = () => {
    const refused = page.current?.querySelector<HTMLElement>("[aria-invalid=true]");
    if (refused) refused.focus();
    else submission.send();
  };
  const { original } = origin;
  const changes = useMemo(
    () =>
      original === null ? [] : listChanges(origin.schema, original.definition, document.definition),
    [original, origin.schema, document],
  );
  return (
    <FormContext.Provider value={form}>
      {draft.isRestored && <Restored onDiscard={() => restart(origin.text, origin.preset)} />}
      <div className={classes.columns} ref={page}>
        <div className={classes.form}>
          <Head
            presets={original === null ? origin.presets : []}
            preset={preset}
            onChoose={choose}
          />
          <Sections />
        </div>
        <div className={classes.side}>
          <StartPanel
            project={project}
            preview={submission.preview}
            faults={isFrozen ? [] : faults}
            seeds={countSeeds(document)}
            isChecking={submission.isChecking}
            isSending={submission.isSending}
            reason={isFrozen ? "The YAML cannot be read. The form follows once it can." : null}
            onSubmit={send}
          />
          {original !== null && (
            <ChangesPanel project={project} experiment={original} changes={changes} />
          )}
          <YamlPanel
            text={draft.text}
            reading={draft.reading}
            onChange={(text) => draft.write(wrapDefinition(text))}
          />
        </div>
      </div>
    </FormContext.Provider>
  );
}

/** What belongs to the environment with which the form began, where it has another one. */
function useFormerEnvironment({ origin, text, typed, write }: DraftState): FormerEnvironment {
  const state = useMemo(() => ({ origin, text, typed }), [origin, text, typed]);
  return useMemo(() => {
    const left = listLeft(state);
    const paths = left.map((member) => member.path);
    return {
      name: readEnvironment(readText(origin).document) ?? "",
      left,
      staying: listStaying(state),
      putBack: () => write(putBack(state), paths),
      removeStaying: () => write(removeStaying(state)),
    };
  }, [origin, state, write]);
}

function countSeeds(document: unknown): number {
  const seeds = readMember(document, ["options", "seeds"]);
  return Array.isArray(seeds) ? seeds.length : 1;
}

function Restored({ onDiscard }: { onDiscard(): void }) {
  return (
    <div className={classes.restored} role="status">
      <span>
        <b>Your draft is back:</b> what you had changed here and not yet submitted.
      </span>
      <Button variant="default" size="compact-xs" onClick={onDiscard}>
        Discard the draft
      </Button>
    </div>
  );
}

interface HeadProps {
  presets: Origin["presets"];
  preset: string | null;
  onChoose(preset: Origin["presets"][number]): void;
}

/** The preset, the name and the notes. */
function Head({ presets, preset, onChoose }: HeadProps) {
  const { faults, isFrozen } = useForm();
  const [name, setName] = useMember(["definition", "name"]);
  const [notes, setNotes] = useMember(["definition", "notes"]);
  return (
    <Panel>
      <div className={classes.section}>
        {presets.length > 0 && (
          <PresetSelect presets={presets} value={preset} onChoose={onChoose} />
        )}
        <div className={classes.head}>
          <TextInput
            label="Name"
            value={typeof name === "string" ? name : ""}
            disabled={isFrozen}
            error={findFault(faults, ["definition", "name"])}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Textarea
            label="Notes"
            placeholder="What you want to find out"
            autosize
            minRows={1}
            maxRows={6}
            value={typeof notes === "string" ? notes : ""}
            disabled={isFrozen}
            error={findFault(faults, ["definition", "notes"])}
            onChange={(event) => setNotes(event.currentTarget.value || undefined)}
          />
        </div>
      </div>
    </Panel>
  );
}
