import { useComputedColorScheme } from "@mantine/core";
import type { Scheme } from "@/lib/color";

/** Light or dark, as shown. */
export function useScheme(): Scheme {
  return useComputedColorScheme("light", { getInitialValueInEffect: false });
}
