import { useComputedColorScheme } from "@mantine/core";
import type { Scheme } from "@/lib/color";

/** Returns the colour scheme of the page: `light` or `dark`. */
export function useScheme(): Scheme {
  return useComputedColorScheme("light", { getInitialValueInEffect: false });
}
