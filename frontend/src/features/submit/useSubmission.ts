import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { keys } from "@/api/queries";
import { previewQuery, submitDocument } from "@/api/submissions";
import type { SubmissionPreview } from "@/api/types";
import { type Fault, listFaults } from "./faults";
import type { DraftState } from "./useDraft";

const PAUSE_MS = 350;

export interface SubmissionState {
  preview: SubmissionPreview | undefined;
  faults: readonly Fault[];
  isChecking: boolean;
  isSending: boolean;
  send(): void;
}

/** Has the server check the document while it is written, and sends it. */
export function useSubmission(project: string, draft: DraftState): SubmissionState {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [settled] = useDebouncedValue(draft.document, PAUSE_MS);
  const preview = useQuery(previewQuery(project, settled));
  const [refused, setRefused] = useState<{ document: unknown; error: Error } | null>(null);
  const submit = useMutation({
    mutationFn: (document: unknown) => submitDocument(project, document),
    onError: (error, document) => setRefused({ document, error }),
    onSuccess: (made) => {
      draft.drop();
      void client.invalidateQueries({ queryKey: keys.experiments });
      void client.invalidateQueries({ queryKey: keys.experiment(project, made.id) });
      void navigate({
        to: "/p/$project/experiments/$experimentId",
        params: { project: made.project, experimentId: made.id },
      });
    },
  });
  const isRefused = refused !== null && refused.document === draft.document;
  return {
    preview: preview.error === null ? preview.data : undefined,
    faults: listFaults(isRefused ? refused.error : preview.error),
    isChecking: draft.document !== settled || preview.isFetching,
    isSending: submit.isPending,
    send: () => submit.mutate(draft.document),
  };
}
