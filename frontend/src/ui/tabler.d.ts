/** `tabler-icons` is an alias of vite.config.ts for the directory of the package's icons. */
declare module "tabler-icons/*" {
  import type { Icon } from "@tabler/icons-react";

  const icon: Icon;
  export default icon;
}
