import { useDebouncedCallback } from "@mantine/hooks";
import { useEffect, useState } from "react";

/** Text that is shown at once and sent after a pause in typing; `undefined` where it is empty. */
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
