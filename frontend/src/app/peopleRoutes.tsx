/** The routes of people and invitations. */
import { createRoute } from "@tanstack/react-router";
import { InvitationsPage } from "@/features/people/InvitationsPage";
import { PeoplePage } from "@/features/people/PeoplePage";
import { PersonPage } from "@/features/people/PersonPage";
import { readInvitationsSearch, readPeopleSearch } from "@/features/people/search";
import { administration } from "./frames";

const people = createRoute({
  getParentRoute: () => administration,
  path: "/people",
  validateSearch: readPeopleSearch,
  component: function ServerPeople() {
    const navigate = people.useNavigate();
    return (
      <PeoplePage
        search={readPeopleSearch(people.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  },
});

const person = createRoute({
  getParentRoute: () => administration,
  path: "/people/$user",
  component: function ServerPerson() {
    const { user } = person.useParams();
    return <PersonPage key={user} user={user} />;
  },
});

const invitations = createRoute({
  getParentRoute: () => administration,
  path: "/invitations",
  validateSearch: readInvitationsSearch,
  component: function ServerInvitations() {
    const navigate = invitations.useNavigate();
    return (
      <InvitationsPage
        search={readInvitationsSearch(invitations.useSearch())}
        onSearch={(search) => void navigate({ search, replace: true })}
      />
    );
  },
});

export const peopleRoutes = [people, person, invitations] as const;
