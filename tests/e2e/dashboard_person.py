"""A person who uses the dashboard in a browser of their own."""

from dataclasses import dataclass

from playwright.sync_api import Browser, Page, expect

REQUEST = """
async ([method, path]) => {
  const session = await (await fetch("/api/v1/session")).json();
  const headers = { "X-CSRF-Token": session.csrf_token };
  const answer = await fetch(`/api/v1/${path}`, { method, headers });
  return [answer.status, await answer.text()];
}
"""


@dataclass(frozen=True)
class DashboardPerson:
    """A page in a browser context of its own, and what the person does there."""

    page: Page

    @classmethod
    def open(cls, browser: Browser, url: str, link: str) -> "DashboardPerson":
        """Opens a one-time link in a new context."""
        context = browser.new_context(base_url=url, viewport={"width": 1440, "height": 900})
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.goto(link)
        return cls(page)

    def request(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Returns status and text of a request below `/api/v1` with this browser's login."""
        status, text = self.page.evaluate(REQUEST, [method, path])
        return status, text

    def get_cookie_header(self) -> dict[str, str]:
        """Returns the header that holds the login, for requests beside the browser."""
        pairs = (f"{one['name']}={one['value']}" for one in self.page.context.cookies())
        return {"Cookie": "; ".join(pairs)}

    def join(self, user: str, password: str) -> None:
        """Redeems the invitation that is open; the person chooses login name and password."""
        self.page.get_by_label("Login name").fill(user)
        self.page.locator("input[name=new-password]").fill(password)
        self.page.get_by_role("button", name="Join", exact=True).click()

    def make_project(self, name: str, slug: str) -> None:
        """Makes a project, as an administrator."""
        page = self.page
        page.goto("/admin/projects")
        page.get_by_role("button", name="New project").click()
        page.get_by_label("Name", exact=False).first.fill(name)
        page.get_by_role("button", name="Create", exact=True).click()
        page.wait_for_url(f"**/p/{slug}/members")

    def invite(self, display_name: str, project: str, role: str) -> str:
        """Invites a person to a project, as an administrator; returns the one-time link."""
        page = self.page
        page.goto("/admin/invitations?invite=true")
        page.get_by_label("Display name").fill(display_name)
        page.get_by_placeholder("No project").click()
        page.get_by_role("option", name=project).click()
        page.locator("input[aria-label='Role in project 1']").click()
        page.get_by_role("option", name=f"{role}: ").click()
        page.get_by_role("button", name="Make the link").click()
        link = page.get_by_title(f"Link of {display_name}").inner_text()
        page.get_by_role("button", name="Done").click()
        return link

    def make_token(self, name: str) -> str:
        """Makes a token on the page of the account; returns its secret."""
        page = self.page
        page.goto("/account")
        page.get_by_role("button", name="New token").click()
        page.get_by_placeholder("laptop").fill(name)
        page.get_by_role("button", name="Create", exact=True).click()
        secret = page.get_by_title("Secret", exact=True).inner_text()
        page.get_by_role("button", name="I have copied it").click()
        return secret

    def act_on_run(self, address: str, verb: str, state: str) -> None:
        """Clicks on an action of the page of a run and waits until the run has the given state."""
        if not self.page.url.endswith(address):
            self.page.goto(address)
        self.page.get_by_role("button", name=verb, exact=True).click()
        badge = self.page.locator(f"h1 [data-state={state}]")
        expect(badge).to_be_visible()

    def disable(self, user: str) -> None:
        """Disables a person whose unfinished jobs go on, as an administrator."""
        page = self.page
        page.goto(f"/admin/people/{user}")
        page.get_by_role("button", name="Disable…").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("radio", name="Keep")).to_be_checked()
        dialog.get_by_role("button", name="Disable", exact=True).click()

    def list_audit_rows(self, address: str) -> list[tuple[str, str]]:
        """Returns who and action of the rows that a page of the audit log shows, newest first."""
        self.page.goto(address)
        table = self.page.get_by_role("table", name="Audit log")
        expect(table.get_by_role("row").nth(1)).to_be_visible()
        cells = "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
        return [(row[1], row[2]) for row in table.locator("tbody tr").evaluate_all(cells)]
