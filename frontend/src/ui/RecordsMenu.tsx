import { Button, Menu } from "@mantine/core";
import { RECORD_FORMATS, RECORD_KINDS, type RecordFormat, type RecordKind } from "@/lib/records";
import { IconDownload } from "./icons";

const FORMATS = { csv: "CSV", parquet: "Parquet", arrow: "Arrow stream" } as const;
const KINDS = {
  points: "All points of all curves",
  episodes: "Training episodes",
  evaluations: "Evaluations",
  epochs: "Epochs",
} as const;

interface RecordsMenuProps {
  /** Returns the URL of a file. */
  buildUrl(kind: RecordKind, format: RecordFormat): string;
}

/** Downloads everything that a run, or the runs of an experiment, recorded. */
export function RecordsMenu({ buildUrl }: RecordsMenuProps) {
  return (
    <Menu>
      <Menu.Target>
        <Button variant="default" px={8} aria-label="Download records" title="Download records">
          <IconDownload size={16} />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {RECORD_KINDS.map((kind) => (
          <div key={kind}>
            <Menu.Label>{KINDS[kind]}</Menu.Label>
            {RECORD_FORMATS.map((format) => (
              <Menu.Item
                key={format}
                component="a"
                href={buildUrl(kind, format)}
                download
                aria-label={`${KINDS[kind]} as ${FORMATS[format]}`}
              >
                {FORMATS[format]}
              </Menu.Item>
            ))}
          </div>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
