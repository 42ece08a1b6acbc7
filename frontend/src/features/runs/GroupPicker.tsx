import { MultiSelect } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { runKeysQuery } from "@/api/runQueries";
import { describeKey, FIELDS } from "./columnKeys";
import classes from "./Runs.module.css";

interface GroupPickerProps {
  project: string;
  groupBy: readonly string[];
  onChange(groupBy: readonly string[]): void;
}

/** Keys that make a group, at most. */
const MOST = 4;
const FIRST = ["agent", "env", "experiment", "seed", "state", "user", "name", "kind"];

/** Chooses the fields and members of definitions by which runs are grouped. */
export function GroupPicker({ project, groupBy, onChange }: GroupPickerProps) {
  const members = (useQuery(runKeysQuery(project)).data?.members ?? []).filter(
    (path) => !FIRST.includes(path),
  );
  const chosen = groupBy.filter((key) => !FIRST.includes(key) && !members.includes(key));
  return (
    <MultiSelect
      className={classes.grouping ?? ""}
      classNames={{ pillsList: classes.groupingPills ?? "" }}
      aria-label="Group by"
      placeholder={groupBy.length === 0 ? "Group by…" : ""}
      data={[
        {
          group: "Run",
          items: FIRST.map((key) => ({ value: key, label: FIELDS[key]?.title ?? key })),
        },
        {
          group: "Definition",
          items: [...chosen, ...members].map((key) => ({
            value: key,
            label: describeKey(key).title,
          })),
        },
      ]}
      value={[...groupBy]}
      onChange={(keys) => onChange(keys)}
      maxValues={MOST}
      searchable
      clearable
      hidePickedOptions
      limit={100}
      nothingFoundMessage="No field has this name"
      comboboxProps={{ width: 240, position: "bottom-start", shadow: "md" }}
    />
  );
}
