import { Textarea } from "@mantine/core";
import { useEffect, useState } from "react";
import { Message } from "@/ui/Message";
import { findFault } from "./faults";
import { labelMember, useForm, useMember } from "./form";
import classes from "./Submit.module.css";
import { type Field, isEqual } from "./schema";
import { type Path, readText, writeText } from "./text";

/** A free object, written as YAML. */
export function YamlField({ field, path }: { field: Field; path: Path }) {
  const { faults, isFrozen } = useForm();
  const [value, change] = useMember(path);
  const shown = isEmpty(value) ? "" : writeText(value).trimEnd();
  const [typed, setTyped] = useState(shown);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    setTyped((text) => (isEqual(readText(text).document ?? undefined, value) ? text : shown));
    setProblem(null);
  }, [shown, value]);
  const type = (text: string) => {
    setTyped(text);
    if (text.trim() === "") {
      setProblem(null);
      change(undefined);
      return;
    }
    const { document, problem: found } = readText(text);
    setProblem(found && "Write one key: value a line.");
    if (document !== null) change(document);
  };
  return (
    <Textarea
      className={classes.wide ?? ""}
      classNames={{ input: classes.code ?? "" }}
      label={labelMember(path)}
      description={<Message text={field.description} />}
      inputWrapperOrder={["label", "input", "error", "description"]}
      placeholder="key: value"
      autosize
      minRows={1}
      maxRows={12}
      spellCheck={false}
      value={typed}
      disabled={isFrozen}
      error={problem ?? findFault(faults, path)}
      onChange={(event) => type(event.currentTarget.value)}
    />
  );
}

function isEmpty(value: unknown): boolean {
  return typeof value !== "object" || value === null || Object.keys(value).length === 0;
}
