"""The pages on which one submits, in a browser: form and YAML, faults, drafts, clones, dialogs."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite
from tests.support.server_fixture import make_definition

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

UNNAMED = """
() => [...document.querySelectorAll("main input, main textarea, main button, main [role=switch]")]
  .filter((one) => one.type !== "hidden" && one.type !== "file" && one.offsetParent !== null)
  .filter((one) => one.tabIndex >= 0)
  .filter((one) => !one.labels?.length && !one.ariaLabel && !one.innerText?.trim())
  .map((one) => one.outerHTML)
"""
"""Controls without a name for a screen reader."""


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> DashboardSite:
    site = await shared_site.add_project("submissions")
    await site.world.register(slots=2, name="form")
    return site


@pytest.mark.page_faults(r"^422 POST /api/v1/experiments:preview\?project=submissions$")
async def test_the_form_and_the_yaml_follow_each_other(site: DashboardSite) -> None:
    page = await site.page("/p/submissions/new?preset=cartpole-dqn")
    text = page.get_by_role("textbox", name="Submission as YAML")
    rate = page.get_by_role("textbox", name="Learning rate")
    await rate.fill("3e-4")
    await expect(text).to_have_value(re.compile("Balances.*learning_rate: 0.0003", re.DOTALL))
    await text.fill((await text.input_value()).replace("learning_rate: 0.0003", "gama: 1"))
    await expect(rate).to_have_value("")
    await expect(page.get_by_role("alert")).to_contain_text("agent.gama")
    await text.fill("definition: [")
    await expect(page.get_by_text("Line 1: ")).to_be_visible()
    await expect(rate).to_be_disabled()
    assert await page.evaluate(UNNAMED) == []


@pytest.mark.page_faults(r"^422 POST /api/v1/experiments:preview\?project=submissions$")
async def test_faults_are_at_their_fields_and_keep_the_form_from_being_sent(
    site: DashboardSite,
) -> None:
    page = await site.page("/p/submissions/new")
    await page.get_by_role("textbox", name="Minibatch size").fill("100000")
    await page.get_by_role("textbox", name="Seeds").fill("0, x")
    await expect(page.get_by_role("alert")).to_contain_text("agent.minibatch_size")
    await page.get_by_role("button", name="Submit 3 runs").click()
    await expect(page.get_by_role("heading", name="New experiment")).to_be_visible()
    await expect(page.get_by_text("Write numbers and ranges, such as 0-2, 7.")).to_be_visible()


async def test_a_draft_survives_a_reload_until_it_is_discarded(site: DashboardSite) -> None:
    page = await site.page("/p/submissions/new")
    name = page.get_by_role("textbox", name="Name", exact=True)
    await name.fill("Not yet submitted")
    await page.wait_for_function(
        "() => Object.values(sessionStorage).some((text) => text.includes('Not yet submitted'))"
    )
    page.on("dialog", lambda dialog: dialog.accept())
    await page.reload()
    await expect(name).to_have_value("Not yet submitted")
    await page.get_by_role("button", name="Discard the draft").click()
    await expect(name).to_have_value("CartPole PPO")


@pytest.mark.page_faults(r"^422 POST /api/v1/experiments:preview\?project=submissions$")
async def test_what_a_preset_says_of_its_environment_leaves_with_it(site: DashboardSite) -> None:
    """Regression: the success score and the notes of CartPole stayed with another environment."""
    page = await site.page("/p/submissions/new?preset=cartpole-ppo")
    environment = page.get_by_role("combobox", name="Environment")
    score = page.get_by_role("textbox", name="Success score")
    notes = page.get_by_role("textbox", name="Notes")
    text = page.get_by_role("textbox", name="Submission as YAML")
    await expect(score).to_have_value("475")
    await environment.fill("Acrobot-v1")
    await expect(score).to_have_value("")
    await expect(notes).to_have_value("")
    await expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("Acrobot PPO")
    notice = page.get_by_role("status").filter(has_text="Left with CartPole-v1")
    await expect(notice).to_contain_text("notes, stop.success_score 475")
    await environment.fill("CartPole-v1")
    await expect(score).to_have_value("475")
    await expect(notice).to_have_count(0)
    await score.fill("470")
    await score.fill("475")
    await environment.fill("Acrobot-v1")
    await expect(notes).to_have_value("")
    await expect(score).to_have_value("475")
    await notice.get_by_role("button", name="Put back").click()
    await expect(notes).to_have_value(re.compile("475"))
    await expect(notice).to_have_count(0)
    await text.fill((await text.input_value()).replace("Acrobot-v1", "Pendulum-v1"))
    await expect(environment).to_have_value("Pendulum-v1")
    await expect(notes).to_have_value(re.compile("475"))


async def test_a_clone_shows_what_differs_and_seeds_are_added(site: DashboardSite) -> None:
    world = site.world
    document = make_definition(name="Original", loop={"env_steps": 1_777})
    original, _ = await world.submit(document, seeds=(0, 4))
    page = await site.page(f"/p/submissions/experiments/{original.id}")
    await page.get_by_role("link", name="Clone with changes").click()
    await expect(page.get_by_role("textbox", name="Seeds")).to_have_value("0, 4")
    await expect(page.get_by_text("Nothing differs yet")).to_be_visible()
    await expect(page.get_by_text("exists already, with seeds 0, 4")).to_be_visible()
    rate = page.get_by_role("textbox", name="Learning rate")
    default = await rate.get_attribute("placeholder")
    assert default
    await rate.fill(default)
    await expect(page.get_by_text("Nothing differs yet")).to_be_visible()
    await page.get_by_role("button", name="Add a hook").click()
    await page.get_by_role("menuitem", name="Video").click()
    changes = page.get_by_test_id("changes")
    await expect(changes).to_have_text("hooksnan_guard nan_guard, video")
    await page.get_by_role("button", name="Remove video").click()
    await page.get_by_role("textbox", name="Gamma").fill("0.9")
    await expect(changes).to_have_text("agent.gamma0.99 0.9")
    await page.get_by_role("button", name="Submit 2 runs").click()
    await expect(page.get_by_role("heading", name="Original")).to_be_visible()
    assert original.id not in page.url
    await page.goto(f"/p/submissions/experiments/{original.id}")
    await page.get_by_role("button", name="New job").click()
    await page.get_by_role("menuitem", name="Train more seeds…").click()
    await expect(page.get_by_role("textbox", name="Seeds")).to_have_value("1, 2")
    await page.get_by_role("button", name="Submit 2 runs").click()
    await expect(page.get_by_text("4 runs").first).to_be_visible()
