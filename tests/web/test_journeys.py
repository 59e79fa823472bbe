# SPDX-License-Identifier: Apache-2.0
"""Six ways through the page of `orrery web`, clicked as a person would."""
import os
import pathlib
import re
import shlex
import subprocess
import unittest

from playwright.sync_api import expect

from support import SEARCH_MS, Browsing


class Journeys(Browsing):
    def test_first_look_and_a_link(self):
        """The page opens with an answer, which follows the GPUs; a link brings both back."""
        self.open()
        expect(self.page.locator("#said")).to_contain_text("Fits.")
        expect(self.page.locator("#took")).to_contain_text("answered in")
        before = self.tile("step").inner_text()
        expect(self.page.locator("#shown figure svg").first).to_be_visible()
        self.page.get_by_label("GPUs", exact=True).fill("128")
        expect(self.tile("step")).not_to_have_text(before)
        after = self.tile("step").inner_text()
        self.page.get_by_role("button", name="Copy link").click()
        expect(self.page.locator("#copy-link")).to_have_text("Copied")
        link = self.page.evaluate("navigator.clipboard.readText()")
        self.assertIn("#simulate?model=llama3-70b&cluster=dgx-h100&gpus=128", link)
        self.page = self.context.new_page()
        self.page.goto(link)
        expect(self.tile("step")).to_have_text(after)
        expect(self.page.get_by_label("GPUs", exact=True)).to_have_value("128")
        self.picture("first-look")

    def test_wrong_name(self):
        """A wrong model is told beside its field, the nearest name is a button, the old answer stays."""
        self.refusals_expected = True
        self.open()
        expect(self.page.locator("#said")).to_contain_text("Fits.")
        before = self.tile("step").inner_text()
        model = self.page.get_by_label("Model", exact=True)
        model.fill("lama3-70b")
        wrong = self.page.locator("#e-model")
        expect(wrong).to_contain_text('"lama3-70b"')
        expect(wrong).to_contain_text("expected")
        expect(model).to_have_attribute("aria-invalid", "true")
        expect(self.page.locator("#old-note")).to_be_visible()
        expect(self.tile("step")).to_have_text(before)
        self.picture("wrong-name")
        model.press("Tab")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "Use llama3-70b")
        self.page.keyboard.press("Enter")
        expect(model).to_have_value("llama3-70b")
        expect(wrong).to_be_empty()
        expect(self.page.locator("#old-note")).to_be_hidden()
        expect(self.page.locator("#error")).to_be_empty()

    def test_names_are_offered(self):
        """The machine is found by words and taken with the keyboard."""
        self.open()
        expect(self.page.locator("#said")).to_contain_text("Fits.")
        machine = self.page.get_by_label("Machine", exact=True)
        machine.click()
        machine.press("ControlOrMeta+a")
        machine.press_sequentially("dgx h200")
        expect(self.page.get_by_role("option").first).to_contain_text("dgx-h200")
        machine.press("ArrowDown")
        machine.press("Enter")
        expect(machine).to_have_value("dgx-h200")
        expect(self.page.locator("#shown figcaption").first).to_contain_text("dgx-h200")
        self.refusals_expected = True  # of what was typed on the way

    def test_best_layout(self):
        """A search shows how far it is, is stopped early, then ends; one of the best is predicted."""
        self.open("#advise?model=deepseek-v3&cluster=dgx-h100&gpus=2048&seq=8192&global_batch=15360")
        search = self.page.get_by_role("button", name="Find the best layout")
        search.click()
        expect(self.page.get_by_role("progressbar")).to_be_visible()
        expect(self.page.locator("#count")).to_contain_text(re.compile(r"\d+%, [\d,]+ layouts simulated"))
        self.picture("search")
        self.page.get_by_role("button", name="Stop").click()
        expect(self.page.locator("#shown .notes")).to_contain_text("Stopped early", timeout=SEARCH_MS)
        for label, value in (("Model", "llama3-70b"), ("GPUs", "64"), ("Global batch", "512")):
            self.page.get_by_label(label, exact=True).fill(value)
        expect(self.page.locator("#old-note")).to_be_visible()
        self.ask()
        expect(self.page.locator("#shown .layouts tbody tr")).to_have_count(10)
        expect(self.page.locator("#shown")).not_to_contain_text("Stopped early")
        self.picture("best-layouts")
        found = self.tile("step").inner_text()
        self.page.get_by_role("button", name="Predict this one, layout 1", exact=True).click()
        expect(self.page.locator("#commands button[aria-current]")).to_have_text("Predict")
        expect(self.page.get_by_label("Tensor (TP)")).not_to_have_value("")
        expect(self.tile("step")).to_have_text(found)

    def test_what_if_and_compare(self):
        """A slider's effect is told and can be undone; two answers stand side by side."""
        self.open()
        expect(self.page.locator("#said")).to_contain_text("Fits.")
        before = self.tile("step").inner_text()
        slider = self.page.get_by_label("Tensor rate, slider")
        for _ in range(12):
            slider.press("ArrowRight")
        effect = self.page.locator("#w-tensor_rate")
        expect(effect).to_contain_text(re.compile(r"step time [\d.]+ s -> [\d.]+ s, [\d.]+% faster"))
        self.assertIn("tensor_rate=", self.page.url)
        self.page.get_by_label("Price of a GPU-hour", exact=True).fill("1.5")
        expect(self.page.locator("#w-gpu_hour_price")).to_contain_text("% less")
        self.picture("what-if")
        self.page.get_by_role("button", name="Reset Tensor rate").click()
        self.page.get_by_role("button", name="Reset Price of a GPU-hour").click()
        expect(self.tile("step")).to_have_text(before)
        self.assertNotIn("tensor_rate", self.page.url)
        self.page.get_by_role("button", name="Keep this answer to compare").click()
        self.page.get_by_label("GPUs", exact=True).fill("128")
        now = self.page.locator("#now")
        expect(now.locator(".differs").first).to_contain_text(re.compile(r"[\d.]+% (less|more), (better|worse)"))
        expect(self.tile("step", "#kept")).to_have_text(before)
        expect(self.page.locator("#kept figure svg").first).to_be_visible()
        expect(now.locator("figure svg").first).to_be_visible()
        left, right = (self.page.locator(side).bounding_box() for side in ("#kept", "#now"))
        self.assertLess(left["x"] + left["width"], right["x"])
        self.picture("compare")
        self.page.get_by_role("button", name="End the comparison").click()
        expect(self.page.locator("#kept")).to_have_count(0)

    def test_schedule(self):
        """Jobs are told in lines of JSON; what is wrong in them stands beside them; the line asks the same."""
        self.refusals_expected = True
        self.open()
        self.command("Schedule")
        expect(self.page.get_by_label("Trace", exact=True)).to_have_value("philly")
        self.ask()
        expect(self.page.locator("#said")).to_contain_text("Best by completion.mean: easy, pack.")
        expect(self.page.locator("#shown figure svg")).to_have_count(6)
        before = self.tile("wait").inner_text()
        self.page.get_by_label("Trace", exact=True).fill("")
        self.page.get_by_label("GPUs", exact=True).fill("64")
        self.page.get_by_label("Placement", exact=True).fill("pack")
        self.page.get_by_label("Days", exact=True).fill("3")
        jobs = self.page.get_by_label("More jobs", exact=True)
        jobs.fill('[{"mix": "acme-kalos",\n  "per_day": 40,]')
        self.page.locator("#search").click()
        expect(self.page.locator("#e-jobs")).not_to_be_empty()
        self.picture("schedule-wrong")
        jobs.fill('[{"mix": "acme-kalos",\n  "per_day": 40}]')
        expect(self.page.locator("#e-jobs")).to_be_empty()
        self.ask()
        expect(self.tile("wait")).not_to_have_text(before)
        self.page.get_by_role("button", name="Command line").click()
        words = shlex.split(self.page.locator("#line pre").inner_text())
        self.assertEqual(words[:2], ["orrery", "schedule"])
        done = subprocess.run([os.environ["ORRERY_BINARY"], *words[1:], "--json", "--quiet"], capture_output=True,
                              check=True)
        self.assertEqual(self.saved("JSON"), done.stdout)

    def saved(self, button):
        """The bytes that a button downloads."""
        with self.page.expect_download(timeout=SEARCH_MS) as download:
            self.page.get_by_role("button", name=button, exact=True).click()
        return pathlib.Path(download.value.path()).read_bytes()

    def test_plan_and_take_along(self):
        """A plan is asked; its page, its JSON and its command line say the same as the program."""
        self.open()
        self.command("Plan")
        self.page.get_by_label("GPUs (list or range)").fill("512,1024")
        self.page.get_by_label("Deadline").fill("200 days")
        self.ask()
        expect(self.page.locator("#said")).to_contain_text("1,024 GPUs of dgx-h100")
        expect(self.tile("days")).to_contain_text("days")
        self.picture("plan")
        self.assertTrue(self.saved("HTML").lower().startswith(b"<!doctype html>"))
        self.page.get_by_role("button", name="Command line").click()
        line = self.page.locator("#line pre").inner_text()
        self.page.locator("#line").get_by_role("button", name="Copy").click()
        self.assertEqual(self.page.evaluate("navigator.clipboard.readText()"), line)
        words = shlex.split(line)
        self.assertEqual(words[:2], ["orrery", "plan"])
        done = subprocess.run([os.environ["ORRERY_BINARY"], *words[1:], "--json", "--quiet"], capture_output=True,
                              check=True)
        self.assertEqual(self.saved("JSON"), done.stdout)


if __name__ == "__main__":
    unittest.main()
