import type { ApiError } from "@/api/client";
import type { SavedViewDetail } from "@/api/types";
import { Banner } from "@/ui/Banner";
import { Message } from "@/ui/Message";

interface ViewProblemsProps {
  view: SavedViewDetail | undefined;
  /** Why the view could not be read. */
  problem: ApiError | null;
}

/** Says what of a view was left out, or why it cannot be shown. */
export function ViewProblems({ view, problem }: ViewProblemsProps) {
  if (problem !== null)
    return (
      <Banner tone="bad" title="The view cannot be shown">
        {problem.status === 404
          ? "It was deleted, or its owner does not share it with you. All runs are shown."
          : problem.message}
      </Banner>
    );
  if (view === undefined || view.problems.length === 0) return null;
  return (
    <Banner tone="warn" title={`${view.name} is shown without what no longer exists`}>
      <ul>
        {view.problems.map(({ pointer, message }) => (
          <li key={`${pointer} ${message}`}>
            <Message text={message} />
          </li>
        ))}
      </ul>
    </Banner>
  );
}
