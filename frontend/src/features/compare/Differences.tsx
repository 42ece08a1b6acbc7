import { Switch } from "@mantine/core";
import { useMemo } from "react";
import { COMPARISON_PATH } from "@/api/statisticsQueries";
import { formatPlural } from "@/lib/format";
import { Dot } from "@/ui/Dot";
import { EmptyState } from "@/ui/EmptyState";
import { Figure } from "@/ui/Figure";
import figure from "@/ui/Figure.module.css";
import classes from "./Compare.module.css";
import type { PartProps } from "./ComparePage";
import { fieldTable, type Member, writeValues } from "./members";

/** The fields of the definitions and of the attempts that differ, or all of them. */
export function Differences(props: PartProps & { members: readonly Member[] }) {
  const { result, request, search, change, members } = props;
  const every = useMemo(() => [...result.definition, ...result.origin], [result]);
  const differing = every.filter((field) => field.differs);
  const fields = search.all ? every : differing;
  const data = useMemo(() => fieldTable(result, fields), [result, fields]);
  const firstOrigin = result.origin.find((field) => search.all || field.differs)?.path;
  return (
    <Figure
      table
      title="Differences"
      name="differences"
      data={data}
      query={{ path: COMPARISON_PATH, body: request }}
      caption={[
        `${formatPlural(differing.length, "field differs", "fields differ")} of ${every.length}. ` +
          "Versions, devices and code are those of each run's newest training attempt.",
      ]}
      aside={
        <Switch
          label="All fields"
          checked={search.all ?? false}
          onChange={(event) => change({ all: event.currentTarget.checked || undefined })}
        />
      }
    >
      {fields.length === 0 ? (
        <EmptyState small title="The definitions are equal">
          Versions, devices and code are equal, too, as far as they were recorded.
        </EmptyState>
      ) : (
        <table className={`${figure.grid} ${classes.fields}`} aria-label="Differences">
          <thead>
            <tr>
              <th scope="col">Field</th>
              {members.map((member) => (
                <th key={member.name} scope="col" title={member.name}>
                  <span className={classes.name}>
                    <Dot color={member.color} />
                    <span className={classes.cut}>{member.name}</span>
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr
                key={field.path}
                data-differs={field.differs || undefined}
                data-first={field.path === firstOrigin || undefined}
              >
                <th scope="row">
                  <code>{field.path}</code>
                </th>
                {field.values.map((values, index) => (
                  <td key={members[index]?.name} title={writeValues(values)}>
                    <code className={classes.cut}>{writeValues(values)}</code>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Figure>
  );
}
