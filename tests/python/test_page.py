# SPDX-License-Identifier: Apache-2.0
"""Every example of docs/python.md prints what the page says."""
import doctest
import re
import unittest

from support import ROOT


class Page(unittest.TestCase):
    def test_examples(self):
        text = (ROOT / "docs/python.md").read_text()
        blocks = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(blocks), 3)
        told = []
        test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "docs/python.md", None, 0)
        doctest.DocTestRunner(verbose=False).run(test, out=told.append)
        self.assertEqual("".join(told), "")


if __name__ == "__main__":
    unittest.main()
