import type { ReactNode } from "react";
import { usePermission } from "@/api/access";
import { EmptyState } from "@/ui/EmptyState";
import { Panel } from "@/ui/Page";

/** The content for administrators of the server; others are told why they do not see it. */
export function ManagersOnly({ children }: { children: ReactNode }) {
  const right = usePermission("server.users");
  if (right.allowed) return children;
  return (
    <Panel>
      <EmptyState title="You may not manage people">{right.reason}</EmptyState>
    </Panel>
  );
}
