import { Select } from "@mantine/core";

const MARKS = [
  { value: "newest", label: "The newest" },
  { value: "best", label: "The best, by its evaluation" },
];

interface SnapshotSelectProps {
  snapshots: readonly { value: string; label: string }[];
  value: string;
  error: string | undefined;
  onChange(value: string): void;
}

/** Chooses the snapshot that a job reads. */
export function SnapshotSelect({ snapshots, value, error, onChange }: SnapshotSelectProps) {
  return (
    <Select
      label="Snapshot"
      data={[...MARKS, ...snapshots]}
      searchable={snapshots.length > 7}
      allowDeselect={false}
      value={value}
      error={error}
      onChange={(next) => next !== null && onChange(next)}
    />
  );
}

interface PoolSelectProps {
  pools: readonly string[];
  value: string | null;
  error: string | undefined;
  onChange(value: string | null): void;
}

/** Chooses the pool of a job that is queued on a run. */
export function PoolSelect({ pools, value, error, onChange }: PoolSelectProps) {
  return (
    <Select
      label="Pool"
      placeholder="That of the training"
      data={[...pools]}
      clearable
      value={value}
      error={error}
      onChange={onChange}
    />
  );
}
