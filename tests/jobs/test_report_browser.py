"""The report in a real browser: at telephone and desktop width, light and dark, without network, errors or scripts."""

from __future__ import annotations

import shutil

import pytest
from report_run import build

from nbcore.jobs import report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is in the dev extra")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module", params=["done", "killed"])
def page_file(request, tmp_path_factory):
    killed = {"02_sft": "killed", "03_reward": "skipped", "04_rl": "skipped", "12_evaluate": "waiting"}
    evil = "</script><script>document.title = 'taken'</script><img src=http://203.0.113.1/x.png>" + "x" * 500
    return report.render(build(tmp_path_factory.mktemp("runs"), killed if request.param == "killed" else None, sample=evil))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scripts", [True, False])
def test_nothing_is_fetched_nothing_complains_and_the_page_does_not_scroll_sideways(browser, page_file, width, scripts):
    heard = []
    context = browser.new_context(viewport={"width": width, "height": 850}, java_script_enabled=scripts)
    page = context.new_page()
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
    page.goto(page_file.as_uri())
    if scripts:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        wide, room = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= room
        assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert page.title().startswith("From a base model")
    assert page.locator("h1").is_visible() and page.locator(".outcome").is_visible()
    assert not heard
    context.close()


def test_light_and_dark_differ_and_paper_is_white(browser, page_file):
    seen = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(page_file.as_uri())
        look = "[getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.body).color]"
        seen[scheme] = page.evaluate(look)
        page.emulate_media(media="print")
        assert page.evaluate(look)[0] == "rgb(255, 255, 255)"
        page.close()
    assert seen["light"][0] == "rgb(255, 255, 255)" and seen["light"] != seen["dark"]
    assert sum(int(c) for c in seen["dark"][0][4:-1].split(",")) < 150


def test_texts_in_the_drawings_stay_inside_them(browser, page_file):
    page = browser.new_page(viewport={"width": 390, "height": 850})
    page.goto(page_file.as_uri())
    spilled = page.evaluate(
        """[...document.querySelectorAll('svg text')].filter(t => {
            const box = t.getBoundingClientRect(), svg = t.ownerSVGElement.getBoundingClientRect();
            return box.left < svg.left - 1 || box.right > svg.right + 1 || box.top < svg.top - 1 || box.bottom > svg.bottom + 1;
        }).map(t => t.textContent)"""
    )
    page.close()
    assert spilled == []
