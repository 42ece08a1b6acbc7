/** What is typed into the dialogs that queue a job on a run, and the request that it makes. */

/** The request of an evaluation or export; members that are left out take their default. */
export interface JobForm {
  schedule: "evaluate" | "continuous_eval" | "continuous_eval_on_train_data" | "export";
  evaluate: {
    snapshot?: string;
    episodes?: number;
    seed?: number;
    policy?: EvaluationPolicy;
    formats?: string[];
    throttle_seconds?: number;
    delay_seconds?: number;
    only_once?: boolean;
  };
  pool?: string;
}

/** The members that the dialogs have a field for. */
export const JOB_FIELDS = [
  "/evaluate/snapshot",
  "/evaluate/episodes",
  "/evaluate/seed",
  "/evaluate/policy",
  "/evaluate/throttle_seconds",
  "/evaluate/delay_seconds",
  "/evaluate/formats",
  "/pool",
];

/** Which actions an evaluation takes. */
export type EvaluationPolicy = "greedy" | "stochastic" | "both";

export interface EvaluateForm {
  /** Every snapshot as it comes, instead of one. */
  follow: boolean;
  snapshot: string;
  episodes: string;
  seed: string;
  policy: EvaluationPolicy | null;
  onTrainData: boolean;
  throttle: string;
  delay: string;
  again: boolean;
  pool: string | null;
}

export const NEW_EVALUATION: EvaluateForm = {
  follow: false,
  snapshot: "newest",
  episodes: "",
  seed: "",
  policy: null,
  onTrainData: false,
  throttle: "",
  delay: "",
  again: false,
  pool: null,
};

export interface ExportForm {
  snapshot: string;
  formats: string[];
  pool: string | null;
}

export const NEW_EXPORT: ExportForm = { snapshot: "newest", formats: [], pool: null };

/** A number that was typed; a text that is none is sent as it is, and refused by the server. */
function readNumber(text: string): number | undefined {
  const plain = text.trim();
  if (plain === "") return undefined;
  const value = Number(plain);
  return Number.isFinite(value) ? value : (plain as unknown as number);
}

const given = <Value extends object>(value: Value): Value =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Value;

export function buildEvaluation(form: EvaluateForm): JobForm {
  const episodes = readNumber(form.episodes);
  const pool = form.pool === null ? {} : { pool: form.pool };
  const policy = form.policy ?? undefined;
  if (!form.follow) {
    const { snapshot } = form;
    const seed = readNumber(form.seed);
    return {
      schedule: "evaluate",
      evaluate: given({ snapshot, episodes, seed, policy }) as JobForm["evaluate"],
      ...pool,
    };
  }
  const common = {
    episodes,
    throttle_seconds: readNumber(form.throttle),
    delay_seconds: readNumber(form.delay),
  };
  if (form.onTrainData)
    return {
      schedule: "continuous_eval_on_train_data",
      evaluate: given(common) as JobForm["evaluate"],
      ...pool,
    };
  const own = { seed: readNumber(form.seed), policy, only_once: form.again ? false : undefined };
  return {
    schedule: "continuous_eval",
    evaluate: given({ ...common, ...own }) as JobForm["evaluate"],
    ...pool,
  };
}

export function buildExport({ snapshot, formats, pool }: ExportForm): JobForm {
  return {
    schedule: "export",
    evaluate: { snapshot, ...(formats.length > 0 && { formats }) },
    ...(pool === null ? {} : { pool }),
  };
}
