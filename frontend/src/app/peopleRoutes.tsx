/** The routes of people and invitations. */
import { createRoute } from "@tanstack/react-router";
import { readInvitationsSearch, readPeopleSearch } from "@/features/people/search";
import { administration } from "./frames";
import { afterLoading, lazyPage } from "./lazyPages";

// Pages that few visits open are loaded when they are opened.
const InvitationsPage = lazyPage(
  () => import("@/features/people/InvitationsPage"),
  "InvitationsPage",
);
const PeoplePage = lazyPage(() => import("@/features/people/PeoplePage"), "PeoplePage");
const PersonPage = lazyPage(() => import("@/features/people/PersonPage"), "PersonPage");

const people = createRoute({
  getParentRoute: () => administration,
  path: "/people",
  validateSearch: readPeopleSearch,
  component: afterLoading(function ServerPeople() {
    const navigate = people.useNavigate();
    return (
      <PeoplePage
        search={readPeopleSearch(people.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  }, PeoplePage),
});

const person = createRoute({
  getParentRoute: () => administration,
  path: "/people/$user",
  component: afterLoading(function ServerPerson() {
    const { user } = person.useParams();
    return <PersonPage key={user} user={user} />;
  }, PersonPage),
});

const invitations = createRoute({
  getParentRoute: () => administration,
  path: "/invitations",
  validateSearch: readInvitationsSearch,
  component: afterLoading(function ServerInvitations() {
    const navigate = invitations.useNavigate();
    return (
      <InvitationsPage
        search={readInvitationsSearch(invitations.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  }, InvitationsPage),
});

export const peopleRoutes = [people, person, invitations] as const;
