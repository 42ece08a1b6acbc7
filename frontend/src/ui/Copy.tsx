import { ActionIcon, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import classes from "./Copy.module.css";
import { IconCheck, IconCopy } from "./icons";

export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  return (
    <Tooltip label={clipboard.copied ? "Copied" : label}>
      <ActionIcon aria-label={label} onClick={() => clipboard.copy(text)} size={24}>
        {clipboard.copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
      </ActionIcon>
    </Tooltip>
  );
}

/** A command or code to copy. */
export function CodeBlock({ text, label }: { text: string; label?: string }) {
  return (
    <div className={classes.code}>
      <pre title={label}>{text}</pre>
      <CopyButton text={text} />
    </div>
  );
}
