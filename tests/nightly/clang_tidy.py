# SPDX-License-Identifier: Apache-2.0
"""Looks at every source but tests with clang-tidy as .clang-tidy says; a finding is an error.

Usage: tests/nightly/run clang-tidy [--changed COMMIT] [--minutes M] [--jobs N] [FILES]
A file is looked at again when it, or a header of ours that it includes, has changed.
"""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess

from part import ROOT, Part, TimeIsUp, options_of, run_part

FOLDERS = ("sim/", "hw_models/", "topologies/", "workloads/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


class Contents:
    """Hashes of a source with all headers of ours that it includes."""

    def __init__(self):
        self.text, self.headers = {}, {}

    def read(self, file):
        if file not in self.text:
            path = ROOT / file
            self.text[file] = path.read_text() if path.exists() else ""
            self.headers[file] = INCLUDE.findall(self.text[file])
        return self.text[file]

    def hash(self, file):
        seen, todo = set(), [file]
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            self.read(one)
            todo += self.headers[one]
        text = (ROOT / ".clang-tidy").read_text() + "".join(self.text[f] for f in sorted(seen))
        return hashlib.sha1(text.encode()).hexdigest()


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--changed", metavar="COMMIT", help="only files that changed since")
    parser.add_argument("files", nargs="*", help="only these")
    options = parser.parse_args()
    part = Part("clang-tidy", options.minutes, options.jobs, preset="clang")
    clean_file = part.folder / "clang-tidy.json"
    clean = json.loads(clean_file.read_text()) if clean_file.exists() else {}

    def look_at(tool, file):
        if part.left() <= 0:
            return None
        done = subprocess.run([tool, "-p", part.folder, "--quiet", file], capture_output=True, text=True,
                              cwd=ROOT, check=False)
        return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")

    def work(part):
        part.need("clang++", "clang")
        tool = part.need("clang-tidy-14", "clang-tidy-14")
        part.configure()
        part.build("orrery_pch", "orrery_scenario_pch", "orrery_test_pch")
        entries = json.loads((part.folder / "compile_commands.json").read_text())
        files = sorted({str(pathlib.Path(e["file"]).relative_to(ROOT)) for e in entries
                        if pathlib.Path(e["file"]).is_relative_to(ROOT)})
        files = [f for f in files if f.startswith(FOLDERS)]
        if options.changed:
            changed = subprocess.run(["git", "-C", ROOT, "diff", "--name-only", options.changed],
                                     capture_output=True, text=True, check=True).stdout.split()
            files = [f for f in files if f in changed]
        if options.files:
            files = [f for f in files if f in options.files]
        contents = Contents()
        todo = [f for f in files if clean.get(f) != contents.hash(f)]
        part.steps = {f: {"passed": True, "seconds": 0} for f in files if f not in todo}
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for file, answer in zip(todo, pool.map(lambda f: look_at(tool, f), todo)):
                if answer is None:
                    raise TimeIsUp
                passed, text = answer
                part.steps[file] = {"passed": passed, "seconds": 0}
                part.ran += 1
                if passed:
                    clean[file] = contents.hash(file)
                    clean_file.write_text(json.dumps(clean))
                else:
                    print(text.strip(), flush=True)
        return f"; {len(todo)} of {len(files)} files looked at now"

    run_part(part, work)


main()
