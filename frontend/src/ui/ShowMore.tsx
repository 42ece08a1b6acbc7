import { Button } from "@mantine/core";
import classes from "./ShowMore.module.css";

interface ShowMoreProps {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage(): unknown };
  /** What the button says. */
  label?: string;
}

/** A button that loads the next page of a list; absent if there is none. */
export function ShowMore({ query, label = "Show more" }: ShowMoreProps) {
  return (
    query.hasNextPage && (
      <BelowList loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {label}
      </BelowList>
    )
  );
}

interface BelowListProps {
  loading?: boolean;
  onClick(): void;
  children: string;
}

/** A button in the middle below a list. */
export function BelowList({ loading = false, onClick, children }: BelowListProps) {
  return (
    <div className={classes.below}>
      <Button variant="default" loading={loading} onClick={onClick}>
        {children}
      </Button>
    </div>
  );
}
