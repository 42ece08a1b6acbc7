"""The methods of `palestra.Client` about saved views."""

from collections.abc import Iterator

from palestra.client_methods import PAGE_SIZE, ClientMethods
from palestra.connection import encode_path_part
from palestra.contract.saved_views import (
    SavedViewChange,
    SavedViewDetail,
    SavedViewRequest,
    SavedViewView,
)


class ViewMethods(ClientMethods):
    """Saved views of the page of runs."""

    def views(self) -> Iterator[SavedViewView]:
        """Yields the user's own views, and those shared with the user's projects, by name."""
        return self._connection.pages(
            SavedViewView, "/views", {"project": self._project, "limit": PAGE_SIZE}
        )

    def view(self, view_id: str) -> SavedViewDetail:
        """Returns a view, and what of it can still be shown."""
        return self._connection.get(SavedViewDetail, f"/views/{encode_path_part(view_id)}")

    def save_view(self, request: SavedViewRequest) -> SavedViewDetail:
        """Saves a view in the client's project."""
        return self._connection.post(
            SavedViewDetail, "/views", request, parameters={"project": self._project}
        )

    def change_view(self, view_id: str, change: SavedViewChange) -> SavedViewDetail:
        """Changes the members of a view that are set in `change`; others stay."""
        path = f"/views/{encode_path_part(view_id)}"
        return self._connection.send(SavedViewDetail, "PATCH", path, body=change)[0]

    def delete_view(self, view_id: str) -> None:
        """Deletes a view."""
        self._connection.delete(f"/views/{encode_path_part(view_id)}")
