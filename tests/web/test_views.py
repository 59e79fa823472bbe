# SPDX-License-Identifier: Apache-2.0
"""Each view of the page in both themes, wide and on a phone: axe finds nothing, and nothing is cut off."""
import unittest
import urllib.parse

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from support import SIZES, Browsing

QUICK = "model=llama3-8b&cluster=dgx-h100&gpus=16&seq=8192&global_batch=64"


class Views(Browsing):
    def fold_report(self):
        """Leaves out what other views have shown: axe takes its time."""
        self.page.locator("#report > summary").click()
        expect(self.page.locator("#report .report")).to_be_hidden()

    def check(self, view, fold_after_first=False):
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            for size, (width, height) in SIZES.items():
                self.page.set_viewport_size({"width": width, "height": height})
                with self.subTest(view=view, theme=theme, size=size):
                    found = Axe().run(self.page)
                    self.assertEqual(found.violations_count, 0, found.generate_report())
                    self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width)
                self.picture(f"{view}-{theme}-{size}")
                if fold_after_first and self.page.locator("#report .report").is_visible():
                    self.fold_report()

    def test_predict(self):
        self.open()
        expect(self.page.locator("#shown figure svg").last).to_be_visible()
        self.page.locator("#show-line").click()
        self.check("predict")

    def test_all_settings(self):
        self.open(f"#simulate?{QUICK}")
        expect(self.tile("step")).to_be_visible()
        self.fold_report()
        self.page.locator("#more summary").click()
        self.page.get_by_label("Find a setting").fill("layers")
        expect(self.page.get_by_label("Recompute layers")).to_be_visible()
        expect(self.page.get_by_label("LoRA rank")).to_be_hidden()
        self.page.get_by_label("Find a setting").fill("")
        self.check("settings")

    def test_error(self):
        self.refusals_expected = True
        self.open(f"#simulate?{QUICK}")
        expect(self.tile("step")).to_be_visible()
        self.fold_report()
        self.page.get_by_label("GPUs", exact=True).fill("13")
        expect(self.page.locator("#e-gpus")).to_contain_text("a multiple of 8")
        self.check("error")

    def test_names(self):
        self.open(f"#simulate?{QUICK}")
        expect(self.tile("step")).to_be_visible()
        self.fold_report()
        self.page.get_by_label("Machine", exact=True).click()
        expect(self.page.get_by_role("option").first).to_be_visible()
        self.check("names")

    def test_does_not_fit(self):
        self.open("#simulate?model=llama3-70b&cluster=dgx-h100&gpus=64&seq=8192&global_batch=512&tp=8&pp=1")
        expect(self.page.locator("#said")).to_contain_text("Does not fit.")
        self.fold_report()
        self.check("does-not-fit")

    def test_advise(self):
        self.open(f"#advise?{QUICK}")
        self.check("before-a-search")
        self.ask()
        expect(self.page.locator("#shown figure svg").last).to_be_visible()
        self.check("advise", fold_after_first=True)

    def test_plan(self):
        self.open("#plan?model=llama3-8b&cluster=dgx-h100&tokens=1T&gpus=64,128&seq=8192&global_batch=512")
        self.ask()
        expect(self.page.locator("#shown figure svg").last).to_be_visible()
        self.check("plan", fold_after_first=True)

    def test_serve(self):
        self.open("#serve?model=llama3-8b&cluster=dgx-h100&stack=vllm&engines=TP1&concurrency=4,16&isl=512&osl=64")
        self.ask()
        expect(self.page.locator("#shown figure svg").last).to_be_visible()
        self.check("serve", fold_after_first=True)

    def test_schedule(self):
        self.open("#schedule?cluster=dgx-h100&gpus=64&days=3&policy=fifo,easy&reliability=llama3-h100&seeds=3&jobs="
                  + urllib.parse.quote('[{"mix": "acme-kalos", "per_day": 40}]'))
        self.ask()
        expect(self.page.locator("#shown figure svg").last).to_be_visible()
        self.check("schedule", fold_after_first=True)

    def test_compare(self):
        self.open(f"#simulate?{QUICK}")
        expect(self.tile("step")).to_be_visible()
        self.page.locator("#keep").click()
        self.page.get_by_label("GPUs", exact=True).fill("32")
        expect(self.page.locator("#now .differs").first).to_contain_text("%")
        expect(self.page.locator("#now figure svg").last).to_be_visible()
        self.check("compare")


if __name__ == "__main__":
    unittest.main()
