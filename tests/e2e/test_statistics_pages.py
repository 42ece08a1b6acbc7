"""The pages Benchmarks and Compare in a real browser: files of figures, launches, refusals."""

import csv
import hashlib
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.app.services.test_statistics import train_seeds
from tests.e2e.dashboard_site import PAGE_MARKS, DashboardSite

pytestmark = [pytest.mark.browser, *PAGE_MARKS]

EXPERIMENTS = (("ppo", "CartPole-v1", 5), ("ppo", "Pendulum-v1", 4), ("dqn", "CartPole-v1", 5))
LIMITS = {"Pendulum-v1": (-1600.0, -150.0), "CartPole-v1": (20.0, 480.0)}


def draw_curves(env: str, seed: int, seeds: int) -> list[tuple[float, ...]]:
    """Returns learning curves of ten evaluations between two bounds, with noise per seed."""
    rng = np.random.default_rng(seed)
    low, high = LIMITS[env]
    reached = rng.uniform(0.55, 1.0, seeds)
    share = np.linspace(0.1, 1.0, 10)[None, :] * reached[:, None]
    curves = low + (high - low) * np.clip(share + rng.normal(0, 0.03, share.shape), 0, 1)
    return [tuple(float(one) for one in curve) for curve in curves]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def site(shared_site: DashboardSite) -> DashboardSite:
    site = await shared_site.add_project("statistics")
    for number, (agent, env, seeds) in enumerate(EXPERIMENTS):
        document: dict[str, Any] = {
            "name": f"Benchmark {agent} {env}",
            "env": {"id": env},
            "agent": {"name": agent, "gamma": 0.98 if agent == "dqn" else 0.99},
        }
        await train_seeds(site.world, document, draw_curves(env, number, seeds))
    return site


@pytest_asyncio.fixture(loop_scope="session")
async def page(site: DashboardSite, close_pages: None) -> Page:
    """The page of the benchmark's runs, scaled by their extremes."""
    return await site.page("/benchmarks?filter=Benchmark&normalise=min_max&by=agent")


async def save(page: Page, title: str, item: str) -> bytes:
    """Saves a figure by its menu; returns the file."""
    await page.get_by_role("button", name=f"Save {title}", exact=True).click()
    async with page.expect_download() as download:
        menu = page.get_by_role("menu", name=f"Save {title}", exact=True)
        await menu.get_by_role("menuitem", name=item).click()
    return (await (await download.value).path()).read_bytes()


async def ask_again(page: Page, title: str) -> Any:
    """Sends the query that stands below a figure; returns the server's answer."""
    figure = page.get_by_role("figure", name=title, exact=True)
    text = await figure.locator("figcaption code").first.get_attribute("title")
    assert text is not None
    address, body = text.removeprefix("POST ").split(" ", 1)
    script = """async ([address, body]) => {
        const session = await (await fetch("/api/v1/session")).json();
        const headers = {"content-type": "application/json", "x-csrf-token": session.csrf_token};
        return await (await fetch(address, {method: "POST", headers, body})).json();
    }"""
    return await page.evaluate(script, [address, body])


async def test_the_file_of_a_figure_has_the_numbers_of_the_server(page: Page) -> None:
    saved = await save(page, "Aggregate scores", "CSV, all digits")
    answer = await ask_again(page, "Aggregate scores")
    rows = list(csv.DictReader(saved.decode().splitlines()))
    assert {row["statistic"] for row in rows} == {"mean", "median", "iqm", "optimality_gap"}
    for row in rows:
        (group,) = [one for one in answer["groups"] if one["name"] == row["group"]]
        for end in ("value", "low", "high"):
            assert float(row[end]) == group["aggregates"][row["statistic"]][end]
    assert {row["group"] for row in rows} == {one["name"] for one in answer["groups"]}
    digest = hashlib.sha256(saved).hexdigest()
    figure = page.get_by_role("figure", name="Aggregate scores", exact=True)
    await expect(figure.get_by_title(digest)).to_be_visible()

    curve = await save(page, "Sample efficiency", "CSV, all digits")
    points = list(csv.DictReader(curve.decode().splitlines()))
    (dqn,) = [one for one in answer["groups"] if one["name"] == "agent=dqn"]
    of_dqn = [row for row in points if row["group"] == "agent=dqn"]
    assert [float(row["env_step"]) for row in of_dqn] == answer["grid"]
    assert [float(row["iqm"]) for row in of_dqn] == dqn["efficiency"]["iqm"]

    efficiency = page.get_by_role("figure", name="Sample efficiency", exact=True)
    await expect(efficiency).to_contain_text("0 and 1 are the lowest and the highest final score")

    drawing = (await save(page, "Performance profiles", "SVG drawing")).decode()
    assert drawing.startswith('<?xml version="1.0"')
    assert "SHA-256 of the data as CSV" in drawing
    assert "class=" not in drawing
    image = await save(page, "Performance profiles", "PNG image")
    assert image.startswith(b"\x89PNG")
    table = (await save(page, "Aggregate scores", "LaTeX table")).decode()
    assert re.search(r"agent=ppo & 9 & 0\.\d+ \[0\.\d+, 0\.\d+\]", table)


@pytest.mark.page_faults(r"^422 POST /api/v1/experiments:preview\?project=statistics$")
async def test_a_missing_cell_opens_the_form_with_its_seeds(page: Page) -> None:
    await page.get_by_role("link", name="Launch agent=dqn in Pendulum-v1").click()
    await page.wait_for_url("**/new?**")
    asked = parse_qs(urlsplit(page.url).query)
    assert asked["from"][0].startswith("benchmark-dqn")
    assert asked["env"][0].startswith("benchmark-ppo-pendulum")
    editor = page.get_by_role("textbox", name=re.compile("YAML"))
    await expect(editor).to_have_value(re.compile(r"id: Pendulum-v1"))
    await expect(editor).to_have_value(re.compile(r"name: dqn"))
    await expect(editor).to_have_value(re.compile(r"seeds: \[ ?0, 1, 2, 3, 4 ?\]"))


@pytest.mark.page_faults(
    r"^422 POST /api/v1/statistics:aggregate$",
    r"^422 GET /api/v1/runs.*filter=agnt",
)
async def test_raw_scores_of_several_environments_are_refused_with_a_way_out(
    page: Page,
) -> None:
    await page.goto("/benchmarks?filter=Benchmark")
    await expect(page.get_by_text("Which normalisation?")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    cells = page.get_by_role("table", name="Scores by group and environment")
    await expect(cells.get_by_role("rowheader")).to_have_text(
        ["benchmark-dqn-cartpole-v1", "benchmark-ppo-cartpole-v1", "benchmark-ppo-pendulum-v1"]
    )
    await page.get_by_role("button", name="Scale by the lowest and highest").click()
    await expect(page.get_by_role("figure", name="Aggregate scores")).to_be_visible()
    await page.goto("/benchmarks?filter=Benchmark&normalise=atari-human-1")
    await expect(page.get_by_text("There is no reference score of any environment")).to_be_visible()
    await page.goto("/benchmarks?filter=agnt:dqn")
    await expect(page.get_by_text("is no field of this list; did you mean agent?")).to_be_visible()
    await page.goto("/benchmarks?filter=agent:none")
    await expect(page.get_by_text("No run with a score matches")).to_be_visible()


async def test_a_cell_that_pools_experiments_says_in_what_they_differ(page: Page) -> None:
    await page.goto("/benchmarks?filter=Benchmark&by=env&normalise=min_max")
    cells = page.get_by_role("table", name="Scores by group and environment")
    await expect(cells.get_by_text("2 experiments: ")).to_contain_text("agent.name")
    saved = await save(page, "Scores by environment", "CSV, all digits")
    rows = list(csv.DictReader(saved.decode().splitlines()))
    (cartpole,) = [row for row in rows if row["experiments"] == "2"]
    assert cartpole["environment"] == "CartPole-v1"
    assert {"agent.name", "agent.gamma"} <= set(cartpole["differing_fields"].split())
    table = (await save(page, "Scores by environment", "LaTeX table")).decode()
    assert r"(2 experiments: agent.name" in table


async def test_few_seeds_have_no_interval_and_it_says_so(page: Page) -> None:
    await page.goto("/benchmarks?filter=Benchmark+env:CartPole-v1+seed<2")
    note = page.get_by_role("figure", name="Aggregate scores").get_by_text(
        "No interval is given where there are fewer than 3 scores"
    )
    await expect(note.first).to_be_visible()
    saved = await save(page, "Aggregate scores", "CSV, all digits")
    rows = list(csv.DictReader(saved.decode().splitlines()))
    assert {(row["low"], row["high"]) for row in rows} == {("", "")}


async def test_selected_experiments_are_compared(page: Page) -> None:
    await page.goto("/experiments")
    for name in ("Benchmark dqn CartPole-v1", "Benchmark ppo CartPole-v1"):
        await page.get_by_role("checkbox", name=f"Select {name}").check()
    await page.get_by_role("link", name="Compare", exact=True).click()
    await page.wait_for_url("**/compare?**")
    table = page.get_by_role("table", name="Differences")
    await expect(table.get_by_text("agent.gamma")).to_be_visible()
    await expect(table.get_by_text("env.id")).to_have_count(0)
    await page.get_by_role("switch", name="All fields").check()
    await expect(table.get_by_text("env.id")).to_be_visible()
    await expect(page.get_by_role("figure", name="Parallel coordinates")).to_be_visible()
    saved = await save(page, "Importance of hyperparameters", "CSV, all digits")
    answer = await ask_again(page, "Importance of hyperparameters")
    rows = {row["parameter"]: row for row in csv.DictReader(saved.decode().splitlines())}
    for one in answer["importance"][0]["parameters"]:
        assert float(rows[one["path"]]["explained"]) == one["explained"]
        assert float(rows[one["path"]]["p"]) == one["p_value"]


@pytest.mark.page_faults(r"^422 POST /api/v1/runs:compare$")
async def test_what_cannot_be_compared_is_said(page: Page) -> None:
    await page.goto("/compare")
    await expect(page.get_by_text("Nothing is chosen yet")).to_be_visible()
    await page.goto("/compare?filter=Benchmark+seed:0+agent:dqn")
    await expect(page.get_by_text("There is only one of the runs to compare")).to_be_visible()
