# SPDX-License-Identifier: Apache-2.0
"""Pages of --html, as they come by mail: whole, live, accessible, with nothing fetched."""
import json
import os
import pathlib
import subprocess
import tempfile

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from support import Browsing, SIZES

BINARY = os.environ["ORRERY_BINARY"]
JOB = ["--model", "llama3-8b", "--cluster", "dgx-h100", "--seq", "4096", "--global-batch", "256"]
ASKED = {
    "simulate": [*JOB, "--gpus", "16", "--pp", "4"],
    "advise": [*JOB, "--gpus", "16", "--pareto", "time,memory"],
    "plan": ["faster-kernels"],
    "topology": ["dgx-h100", "--gpus", "1024"],
    "serve": ["--model", "llama3.3-70b", "--cluster", "dgx-h100", "--stack", "vllm", "--engines", "TP8",
              "--concurrency", "1,4", "--requests", "20", "--isl", "200", "--osl", "20"],
    "schedule": ["--cluster", "dgx-h100", "--gpus", "64", "--jobs", '[{"mix": "acme-kalos", "per_day": 40}]',
                 "--days", "3", "--policy", "fifo,easy", "--place", "pack,spread", "--reliability", "llama3-h100",
                 "--seeds", "3"],
}
TABLES = pathlib.Path(__file__).resolve().parents[2] / "validation/measurements/training"
MOST_BYTES = 3_000_000


class Pages(Browsing):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def show(self, command, scheme="light", size="wide"):
        """Opens the page of a command's answer; returns the bytes of its --json."""
        file = self.folder / f"{command}.html"
        done = subprocess.run([BINARY, command, *ASKED[command], "--html", str(file), "--json", "--quiet"],
                              capture_output=True, check=True)
        self.assertLess(file.stat().st_size, MOST_BYTES)
        self.url = ""  # nothing may be asked of any host
        self.page.emulate_media(color_scheme=scheme)
        self.page.set_viewport_size(dict(zip(("width", "height"), SIZES[size])))
        self.page.goto(file.as_uri())
        for chart in self.page.locator("[data-chart]").all():
            expect(chart.locator("svg")).to_be_visible()
        return done.stdout

    def see(self, request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(f"request to {request.url}")

    def check_sound(self):
        found = Axe().run(self.page)
        self.assertEqual(found.violations_count, 0, found.generate_report())
        wider = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(wider, 0)

    def test_each_is_whole(self):
        for command in ASKED:
            with self.subTest(command):
                answer = self.show(command)
                self.assertEqual(self.page.locator("h1").count(), 1)
                self.assertEqual(json.loads(self.page.locator("#answer-data").inner_text()), json.loads(answer))
                self.check_sound()
                self.picture(f"page-{command}")

    def test_schedule_is_read_over_time(self):
        self.show("schedule")
        chart = self.page.locator('[data-chart="states"]')
        chart.locator("svg").hover()
        read = self.page.locator("#vg-tooltip-element")
        expect(read).to_be_visible()
        for words in ("GPUs held", "jobs that wait", "MW"):
            expect(read).to_contain_text(words)

    def test_validation(self):
        file = self.folder / "validate.html"
        for tables in ([TABLES / "h200.csv", TABLES / "simumax.csv"], []):
            subprocess.run([BINARY, "validate", *map(str, tables), "--html", str(file), "--quiet"], check=True)
            self.assertLess(file.stat().st_size, MOST_BYTES)
            self.page.goto(file.as_uri())
            for chart in self.page.locator("[data-chart]").all():
                expect(chart.locator("svg")).to_be_visible()
            self.assertGreater(self.page.locator("[data-chart]").count(), 3)
            self.assertGreaterEqual(self.page.locator("table").count(), 4)
            self.picture(f"page-validate-{'own' if tables else 'shipped'}")
        self.check_sound()

    def test_dark_and_small(self):
        self.show("simulate", "dark", "phone")
        self.check_sound()
        self.picture("page-dark-phone")
        self.show("schedule", "dark", "phone")
        self.check_sound()
        self.picture("page-schedule-dark-phone")

    def test_numbers_open_tables_sort_answers_are_saved(self):
        answer = self.show("advise")
        self.page.get_by_role("button", name="s", exact=False).first.click()
        opened = self.page.locator("[popover]:popover-open")
        expect(opened).to_contain_text("Values that it rests on most")
        self.check_sound()
        self.page.keyboard.press("Escape")
        expect(opened).to_have_count(0)
        table = self.page.locator("table", has=self.page.get_by_role("button", name="tok/s/GPU")).first
        heading = table.get_by_role("button", name="tok/s/GPU")
        column = table.locator("tbody tr td:nth-child(%d)" % (1 + table.locator("th, thead td").all_inner_texts()
                                                              .index(heading.inner_text())))
        heading.press("Enter")
        rising = [float(text.replace(",", "")) for text in column.all_inner_texts()]
        self.assertEqual(rising, sorted(rising))
        heading.press("Enter")
        self.assertEqual([float(text.replace(",", "")) for text in column.all_inner_texts()], rising[::-1])
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save the answer as JSON").click()
        self.assertEqual(pathlib.Path(download.value.path()).read_bytes(), answer)

    def test_on_paper(self):
        self.show("simulate")
        for paper in ("A4", "Letter"):
            printed = self.page.pdf(format=paper)
            self.assertGreater(len(printed), 50_000)
            if folder := os.environ.get("ORRERY_SCREENSHOTS"):
                (pathlib.Path(folder) / f"{paper}.pdf").write_bytes(printed)
