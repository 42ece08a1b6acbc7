/** Findings of the server about a training. */

export interface Finding {
  rule: string;
  /** What is wrong, with the number. */
  sentence: string;
  remedy: string;
  /** Series that shows it; empty if none does. */
  series: string;
  env_step: number;
}

/** Returns the number of findings in words. */
export function describeFindings(findings: readonly Finding[]): string {
  return findings.length === 1 ? "1 finding" : `${findings.length} findings`;
}
