"""A person who uses the dashboard in a browser context of their own."""

from dataclasses import dataclass

from playwright.async_api import Browser, Page, expect

from tests.e2e.dashboard_site import open_page

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
    async def open(cls, browser: Browser, url: str, link: str) -> "DashboardPerson":
        """Opens a one-time link in a new context."""
        page = await open_page(browser, url)
        await page.goto(link)
        return cls(page)

    async def request(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Returns status and text of a request below `/api/v1` with this browser's login."""
        status, text = await self.page.evaluate(REQUEST, [method, path])
        return status, text

    async def get_cookie_header(self) -> dict[str, str]:
        """Returns the header that holds the login, for requests beside the browser."""
        cookies = await self.page.context.cookies()
        pairs = (f"{cookie['name']}={cookie['value']}" for cookie in cookies)
        return {"Cookie": "; ".join(pairs)}

    async def join(self, user: str, password: str) -> None:
        """Redeems the invitation that is open; the person chooses login name and password."""
        await self.page.get_by_label("Login name").fill(user)
        await self.page.locator("input[name=new-password]").fill(password)
        await self.page.get_by_role("button", name="Join", exact=True).click()

    async def make_project(self, name: str, slug: str) -> None:
        """Makes a project, as an administrator."""
        page = self.page
        await page.goto("/admin/projects")
        await page.get_by_role("button", name="New project").click()
        await page.get_by_label("Name", exact=False).first.fill(name)
        await page.get_by_role("button", name="Create", exact=True).click()
        await page.wait_for_url(f"**/p/{slug}/members")

    async def invite(self, display_name: str, project: str, role: str) -> str:
        """Invites a person to a project, as an administrator; returns the one-time link."""
        page = self.page
        await page.goto("/admin/invitations?invite=true")
        await page.get_by_label("Display name").fill(display_name)
        await page.get_by_placeholder("No project").click()
        await page.get_by_role("option", name=project).click()
        await page.locator("input[aria-label='Role in project 1']").click()
        await page.get_by_role("option", name=f"{role}: ").click()
        await page.get_by_role("button", name="Make the link").click()
        link = await page.get_by_title(f"Link of {display_name}").inner_text()
        await page.get_by_role("button", name="Done").click()
        return link

    async def make_token(self, name: str) -> str:
        """Makes a token on the page of the account; returns its secret."""
        page = self.page
        await page.goto("/account")
        await page.get_by_role("button", name="New token").click()
        await page.get_by_placeholder("laptop").fill(name)
        await page.get_by_role("button", name="Create", exact=True).click()
        secret = await page.get_by_title("Secret", exact=True).inner_text()
        await page.get_by_role("button", name="I have copied it").click()
        return secret

    async def act_on_run(self, address: str, verb: str, state: str) -> None:
        """Clicks on an action of the page of a run and waits until the run has the given state."""
        if not self.page.url.endswith(address):
            await self.page.goto(address)
        await self.page.get_by_role("button", name=verb, exact=True).click()
        await expect(self.page.locator(f"h1 [data-state={state}]")).to_be_visible()

    async def disable(self, user: str) -> None:
        """Disables a person whose unfinished jobs go on, as an administrator."""
        page = self.page
        await page.goto(f"/admin/people/{user}")
        await page.get_by_role("button", name="Disable…").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("radio", name="Keep")).to_be_checked()
        await dialog.get_by_role("button", name="Disable", exact=True).click()

    async def list_audit_rows(self, address: str) -> list[tuple[str, str]]:
        """Returns who and action of the rows that a page of the audit log shows, newest first."""
        await self.page.goto(address)
        table = self.page.get_by_role("table", name="Audit log")
        await expect(table.get_by_role("row").nth(1)).to_be_visible()
        cells = "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
        return [(row[1], row[2]) for row in await table.locator("tbody tr").evaluate_all(cells)]
