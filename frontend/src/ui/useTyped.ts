import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";

/**
 * Holds a typed text, and passes it to `onChange` after a pause in typing; `undefined` if empty.
 */
export function useTyped(value: string | undefined, onChange: (text: string | undefined) => void) {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const send = useDebouncedCallback((typed: string) => onChange(typed.trim() || undefined), 200);
  return {
    text,
    type: (typed: string) => {
      setText(typed);
      send(typed);
    },
  };
}
