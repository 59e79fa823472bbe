# SPDX-License-Identifier: Apache-2.0
"""A browser on the page of `orrery web`, watched for errors and for requests that leave the machine."""
import os
import pathlib
import unittest
import urllib.parse

from playwright.sync_api import expect, sync_playwright

from server import server

CHROMIUM = os.environ.get("ORRERY_CHROMIUM", "/usr/bin/chromium")
SCREENSHOTS = os.environ.get("ORRERY_SCREENSHOTS")
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
SEARCH_MS = 60_000  # that a search may take

expect.set_options(timeout=15_000)


class Browsing(unittest.TestCase):
    """One server and one browser for the class, a fresh context for each test."""

    @classmethod
    def setUpClass(cls):
        cls.url = cls.enterClassContext(server())
        playwright = cls.enterClassContext(sync_playwright())
        cls.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.faults = []
        self.refusals_expected = False
        self.context = self.browser.new_context(
            viewport=dict(zip(("width", "height"), SIZES["wide"])), reduced_motion="reduce", accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"])
        self.addCleanup(self.context.close)
        self.context.on("page", self.watch)
        self.page = self.context.new_page()

    def tearDown(self):
        self.assertEqual(self.faults, [], "what the console said, and requests that left the machine")

    def watch(self, page):
        page.on("console", self.hear)
        page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))
        page.on("request", self.see)

    def hear(self, message):
        if message.type not in ("error", "warning"):
            return
        # A browser says so of each response of status 400, which a wrong question has.
        if self.refusals_expected and "status of 400" in message.text:
            return
        self.faults.append(f"console: {message.text}")

    def see(self, request):
        address = urllib.parse.urlsplit(request.url)
        if address.scheme not in ("data", "blob") and address.netloc != urllib.parse.urlsplit(self.url).netloc:
            self.faults.append(f"request to {request.url}")

    def open(self, fragment=""):
        self.page.goto(self.url + fragment)
        expect(self.page.locator("#commands button[aria-current]")).to_be_visible()

    def ask(self):
        """Presses the button of a search and awaits its answer."""
        self.page.locator("#search").click()
        expect(self.page.locator("#stop")).to_be_hidden(timeout=SEARCH_MS)
        expect(self.tile("step").or_(self.tile("ttft")).or_(self.tile("completion"))).to_be_visible()

    def tile(self, name, inside="#shown"):
        return self.page.locator(f'{inside} [data-number="{name}"] .value')

    def command(self, name):
        self.page.get_by_role("navigation").get_by_role("button", name=name).click()

    def picture(self, name):
        if SCREENSHOTS:
            self.page.screenshot(path=pathlib.Path(SCREENSHOTS) / f"{name}.png")
