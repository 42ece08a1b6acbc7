import { Link } from "@tanstack/react-router";
import classes from "./People.module.css";

/** Tabs of the list of people and of the invitations. */
export function PeopleTabs() {
  const active = { activeProps: { "data-active": true } };
  return (
    <nav className={classes.tabs} aria-label="People and invitations">
      <Link to="/admin/people" activeOptions={{ exact: true, includeSearch: false }} {...active}>
        People
      </Link>
      <Link to="/admin/invitations" {...active}>
        Invitations
      </Link>
    </nav>
  );
}
