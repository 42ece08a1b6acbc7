import { Button, FileButton, Textarea } from "@mantine/core";
import { capitalize } from "@/lib/format";
import { CopyButton } from "@/ui/Copy";
import { Panel } from "@/ui/Page";
import classes from "./Submit.module.css";
import type { Reading } from "./text";

interface YamlPanelProps {
  text: string;
  reading: Reading;
  onChange(text: string): void;
}

/** The submission as the file that `palestra submit` takes; the form follows it. */
export function YamlPanel({ text, reading, onChange }: YamlPanelProps) {
  const open = async (file: File | null) => {
    if (file !== null) onChange(await file.text());
  };
  const where = reading.line === null ? "" : `Line ${reading.line}: `;
  return (
    <Panel
      title="As YAML"
      aside={
        <>
          <FileButton onChange={(file) => void open(file)} accept=".yaml,.yml,.json">
            {(props) => (
              <Button {...props} variant="subtle" size="compact-xs">
                Open a file…
              </Button>
            )}
          </FileButton>
          <CopyButton text={text} label="Copy as YAML" />
        </>
      }
    >
      <Textarea
        aria-label="Submission as YAML"
        classNames={{ input: classes.yaml ?? "" }}
        rows={Math.min(30, Math.max(12, text.split("\n").length))}
        spellCheck={false}
        value={text}
        error={reading.problem && `${where}${capitalize(reading.problem)}`}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
      <p className={classes.hint}>
        The form and this text are the same submission: change either. <code>palestra submit</code>{" "}
        takes it as a file.
      </p>
    </Panel>
  );
}
