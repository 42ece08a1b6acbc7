import type { ReactNode } from "react";
import { usePermission } from "@/api/access";
import { EmptyState } from "@/ui/EmptyState";
import { Panel } from "@/ui/Page";

/**
 * Shows its content to administrators of the server, and to others a sentence with the reason.
 */
export function ManagersOnly({ children }: { children: ReactNode }) {
  const right = usePermission("server.users");
  if (right.allowed) return children;
  return (
    <Panel>
      <EmptyState title="You may not manage people">{right.reason}</EmptyState>
    </Panel>
  );
}
