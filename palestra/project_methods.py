"""The methods of `palestra.Client` that manage projects, their members and thresholds."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.permissions import Role
from palestra.contract.projects import (
    DeletedProjectView,
    MembershipRequest,
    MemberView,
    ProjectChange,
    ProjectRequest,
    ProjectView,
)
from palestra.contract.thresholds import ThresholdDirection, ThresholdRequest, ThresholdView


class ProjectMethods(ClientMethods):
    """Projects, members and thresholds."""

    def projects(self) -> Iterator[ProjectView]:
        """Yields the caller's projects by name; all of them for a server administrator."""
        return self._connection.pages(ProjectView, "/projects", {"limit": PAGE_SIZE})

    def project_view(self, slug: str) -> ProjectView:
        """Returns a project with the numbers of its objects, and the caller's permissions in it."""
        return self._connection.get(ProjectView, _path(slug))

    def create_project(self, request: ProjectRequest) -> ProjectView:
        """Creates a project, of which the caller becomes a maintainer.

        Requires a server administrator with the scope `admin`.
        """
        return self._connection.post(ProjectView, "/projects", request)

    def change_project(self, slug: str, change: ProjectChange) -> ProjectView:
        """Changes the members that are set in `change`, explicit `None` included; others stay."""
        return self._connection.send(ProjectView, "PATCH", _path(slug), body=change)[0]

    def archive_project(self, slug: str) -> ProjectView:
        """Archives a project: nothing can be submitted to it; its running jobs continue."""
        return self._connection.post(ProjectView, f"{_path(slug)}:archive")

    def restore_project(self, slug: str) -> ProjectView:
        """Opens an archived project again."""
        return self._connection.post(ProjectView, f"{_path(slug)}:restore")

    def delete_project(self, slug: str, *, confirm: str) -> DeletedProjectView:
        """Deletes an archived project: it is hidden, and its jobs are cancelled.

        A server administrator can restore it until `restorable_until` of the answer; its content
        is removed after that.

        Args:
            slug: The project.
            confirm: The same slug again.
        """
        parameters = {"confirm": confirm}
        return self._connection.send(
            DeletedProjectView, "DELETE", _path(slug), parameters=parameters
        )[0]

    def deleted_projects(self) -> Iterator[DeletedProjectView]:
        """Yields the deleted projects whose content is not removed yet, the latest first.

        Requires a server administrator with the scope `admin`.
        """
        return self._connection.pages(DeletedProjectView, "/projects:deleted", {"limit": PAGE_SIZE})

    def undelete_project(self, slug: str) -> ProjectView:
        """Restores a deleted project; it is archived, and its jobs stay cancelled.

        Requires a server administrator with the scope `admin`.
        """
        return self._connection.post(ProjectView, f"{_path(slug)}:undelete")

    def members(self, slug: str) -> Iterator[MemberView]:
        """Yields all members of a project by login name."""
        return self._connection.pages(MemberView, f"{_path(slug)}/members")

    def set_member(self, slug: str, user: str, role: Role) -> MemberView:
        """Adds a user to a project by login name, or gives a member another role."""
        path = f"{_path(slug)}/members/{encode_path_part(user)}"
        return self._connection.send(MemberView, "PUT", path, body=MembershipRequest(role=role))[0]

    def remove_member(self, slug: str, user: str) -> None:
        """Removes a member; the member's experiments stay and their jobs continue."""
        self._connection.delete(f"{_path(slug)}/members/{encode_path_part(user)}")

    def thresholds(self, slug: str) -> Iterator[ThresholdView]:
        """Yields all thresholds of a project by name."""
        return self._connection.pages(ThresholdView, f"{_path(slug)}/thresholds")

    def set_threshold(
        self,
        slug: str,
        name: str,
        series: str,
        value: float,
        *,
        direction: ThresholdDirection = ThresholdDirection.AT_LEAST,
    ) -> ThresholdView:
        """Declares a threshold of a project, or replaces the one of that name.

        Lists of runs and experiments then filter and sort by `reached.NAME`, the env_step at which
        a run first reached it, and by `reached.NAME.seconds`. Requires a maintainer with the scope
        `admin`.

        Args:
            slug: The project.
            name: Lower-case letters, digits and hyphens.
            series: For example `evaluation/mean`.
            value: A finite number.
            direction: Whether values at or above it reach it, or values at or below it.
        """
        path = f"{_path(slug)}/thresholds/{encode_path_part(name)}"
        body = ThresholdRequest(series=series, value=value, direction=direction)
        return self._connection.send(ThresholdView, "PUT", path, body=body)[0]

    def remove_threshold(self, slug: str, name: str) -> None:
        """Removes a threshold and what was kept of its crossings; the curves stay."""
        self._connection.delete(f"{_path(slug)}/thresholds/{encode_path_part(name)}")


def _path(slug: str) -> str:
    return f"/projects/{encode_path_part(slug)}"
