# SPDX-License-Identifier: Apache-2.0
"""Carries out the Dockerfile that orrery writes, without Docker: no image is built, pulled or run.

Usage: tests/nightly/run image [--dockerfile FILE] [--source FOLDER] [--minutes M]
Each stage is a folder that begins as a Debian of debootstrap, which has what debian:bookworm-slim has and its
documentation too. RUN lines run in there (chroot) and COPY lines copy. In the last stage the shards and the merge of
the manifests that orrery writes beside the Dockerfile are run as the user that USER names, with nothing but /tmp and
/results that he can write to. Layers, registries, other processors and what a container's runtime does are not tested.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

from part import ROOT, Part, options_of, run_part

BASES = {"debian:bookworm-slim": "bookworm"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # what images of Debian set
QUESTION = {"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "seq": 4096, "global_batch": 64}
SHARDS = 2


def instructions(text):
    """(name, rest) of each instruction: lines that go on are joined, comments are left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    found = [line.strip().split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(words[0].upper(), words[1] if len(words) > 1 else "") for words in found]


class Stage:
    """One FROM of the Dockerfile: a folder, and what holds for the instructions that follow."""

    def __init__(self, name, base, folder):
        self.name, self.base, self.folder = name, base, folder
        self.steps, self.workdir, self.user, self.entrypoint = [], "/", "0:0", []
        self.environment = {"PATH": PATH}

    def inside(self, path):
        return self.folder / str(path).lstrip("/")


def parse(text, folder):
    """The stages in order. An instruction that is not carried out here ends the program."""
    stages = []
    for name, rest in instructions(text):
        if name == "FROM":
            words = rest.split()
            stages.append(Stage(words[2] if len(words) == 3 else str(len(stages)), words[0],
                                folder / f"stage-{len(stages)}"))
        elif name in ("RUN", "COPY", "WORKDIR", "ENV", "USER", "ENTRYPOINT") and stages:
            stages[-1].steps.append((name, rest))
        else:
            raise SystemExit(f"image: found {name} in the Dockerfile; expected FROM, RUN, COPY, WORKDIR, ENV, USER "
                             "or ENTRYPOINT, which tests/nightly/image.py carries out")
    return stages


def mirror():
    """Where this machine takes Debian from, as words for debootstrap; none: its own default."""
    files = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    for file in files:
        found = file.is_file() and re.search(r"^(?:deb|URIs:)\s.*?(https?://\S+/debian)/?\s", file.read_text() + "\n",
                                             re.MULTILINE)
        if found:
            return [found[1]]
    return []


def chrooted(stage, words, user="0:0", writable=None):
    """The command that runs words in a stage's folder. `writable`: only these folders can be written to, which are
    {path inside: folder outside}."""
    settings = {**{key: os.environ[key] for key in ("http_proxy", "https_proxy") if key in os.environ},
                **stage.environment}
    root = shlex.quote(str(stage.folder))
    mounts = []
    if writable is not None:
        mounts = [f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}"]
        mounts += [f"mount --bind {shlex.quote(str(outside))} {shlex.quote(str(stage.inside(inside)))}"
                   for inside, outside in writable.items()]
    mounts.append(f"mount -t proc proc {root}/proc")
    run = ["chroot", f"--userspec={user}", "--groups=", stage.folder, "env", "-i", f"--chdir={stage.workdir}",
           *[f"{key}={value}" for key, value in settings.items()], *words]
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
            "\n".join([*mounts, "exec " + shlex.join(map(str, run))])]


class Image:
    def __init__(self, part, stages, source):
        self.part, self.stages, self.source = part, stages, source
        self.count = 0

    def run(self, words):
        self.count += 1
        log = self.part.logs / f"{self.count}.log"
        code = self.part.command(words, log)
        if code != 0:
            print(log.read_text(errors="replace")[-4000:], f"\nwhole log: {log}", sep="", file=sys.stderr)
        return code == 0

    def make_base(self, release):
        base = self.part.folder / release
        shutil.rmtree(base, ignore_errors=True)
        return self.run(["debootstrap", "--variant=minbase", release, base, *mirror()])

    def begin(self, stage):
        """A stage's folder as its base is."""
        named = next((one.folder for one in self.stages if one.name == stage.base), None)
        base = named or self.part.folder / BASES[stage.base]
        shutil.rmtree(stage.folder, ignore_errors=True)
        return self.run(["cp", "-a", "--reflink=auto", base, stage.folder])

    def copy(self, stage, rest):
        """COPY: of a folder what is in it; all belongs to root."""
        words = rest.split()
        origin = self.source
        if words[0].startswith("--from="):
            name = words.pop(0).removeprefix("--from=")
            origin = next(one.folder for one in self.stages if one.name == name)
        if any(word.startswith(("--", "[")) or set(word) & set("*?") for word in words):
            raise SystemExit(f"image: found COPY {rest} in the Dockerfile; expected names alone")
        *sources, target = words
        folder = stage.inside(pathlib.PurePosixPath(stage.workdir) / target)
        for name in sources:
            path = origin / name.lstrip("/")
            into = path.is_dir() or len(sources) > 1 or target.endswith("/")
            (folder if into else folder.parent).mkdir(parents=True, exist_ok=True)
            if not self.run(["cp", "-r", "--preserve=mode,timestamps,links", f"{path}/." if path.is_dir() else path,
                             folder]):
                return False
        return True

    def carry_out(self, stage, name, rest):
        """One instruction; those that only say what holds from here on take effect again on each run."""
        if name == "RUN":
            return self.part.step(f"{stage.name}: RUN {' '.join(rest.split())[:90]}", lambda: self.run(
                chrooted(stage, ["/bin/sh", "-c", rest], stage.user)))
        if name == "COPY":
            return self.part.step(f"{stage.name}: COPY {rest[:90]}", lambda: self.copy(stage, rest))
        if name == "WORKDIR":
            stage.workdir = str(pathlib.PurePosixPath(stage.workdir) / rest)
            stage.inside(stage.workdir).mkdir(parents=True, exist_ok=True)
        elif name == "ENV":
            stage.environment.update(word.split("=", 1) for word in shlex.split(rest))
        elif name == "USER":
            stage.user = rest
        else:
            stage.entrypoint = json.loads(rest)
        return True

    def make(self):
        """Whether all instructions of all stages were carried out."""
        for stage in self.stages:
            if stage.base in BASES and not self.part.step(f"debootstrap {stage.base}", lambda s=stage: self.make_base(
                    BASES[s.base])):
                return False
            if not self.part.step(f"{stage.name}: FROM {stage.base}", lambda s=stage: self.begin(s)):
                return False
            if not all(self.carry_out(stage, name, rest) for name, rest in stage.steps):
                return False
        return True

    def check(self, job, single):
        """Carries out a manifest's shards and its merge in the last stage: whether they print the bytes of `single`,
        a command of build/orrery. Folders stand for the volumes; nothing else can be written to."""
        last = self.stages[-1]
        if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", last.user):
            print(f"the last stage runs as the user {last.user!r}; expected numbers of one who is not root",
                  file=sys.stderr)
            return False
        data, shard_words, merge_script = manifest(job.read_text())
        volumes = {f"/{name}": job.with_suffix("") / name for name in ("tmp", "results", "question")}
        for inside, outside in volumes.items():
            outside.mkdir(parents=True)
            last.inside(inside).mkdir(exist_ok=True)
            if inside != "/question":
                os.chown(outside, *map(int, last.user.split(":")))
        for name, text in data.items():
            (volumes["/question"] / name).write_text(text)

        def ran(words):
            done = subprocess.run(list(map(str, chrooted(last, words, last.user, volumes))), capture_output=True,
                                  check=False)
            if done.returncode != 0:
                print(f"{shlex.join(words)}: exit code {done.returncode}: {done.stderr.decode()}", file=sys.stderr)
            return done.stdout if done.returncode == 0 else b""
        for shard in range(SHARDS):
            ran([*last.entrypoint, *[word.replace("$(JOB_COMPLETION_INDEX)", str(shard)) for word in shard_words]])
        merged = ran(["/bin/sh", "-c", merge_script])
        expected = subprocess.run([*map(str, single)], capture_output=True, check=True).stdout
        if merged != expected:
            print(f"{job.name}: shards and merge do not print what {shlex.join(map(str, single))} prints:\n"
                  f"{merged.decode()[:2000]}", file=sys.stderr)
        return merged == expected


def manifest(text):
    """Of a manifest that orrery wrote: the files of the question, a shard's words, the script that merges."""
    data = {name: json.loads(value) for name, value in re.findall(r'^  ([\w.-]+): (".*")$', text, re.MULTILINE)}
    words = re.search(r"^ +args: (\[.*\])$", text, re.MULTILINE)
    script = re.search(r"^ +- \|\n((?: {14}.*\n)+)", text, re.MULTILINE)
    if not data or not words or not script:
        raise SystemExit("image: found a manifest without a question, words of a shard or a script that merges; "
                         "expected one as orrery plan --kubernetes-job writes it")
    return data, json.loads(words[1]), textwrap.dedent(script[1])


def written(folder):
    """{manifest that build/orrery writes: the command whose bytes its merge must print}; a Dockerfile beside them."""
    binary = ROOT / "build/orrery"
    if not binary.exists():
        print("image: found no build/orrery, which writes the Dockerfile; run ./orrery --version", file=sys.stderr)
        sys.exit(4)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    question, lines = folder / "question.json", folder / "lines.jsonl"
    question.write_text(json.dumps({**QUESTION, "gpus": [8, 16, 32], "tokens": "1T"}))
    lines.write_text("".join(json.dumps({**QUESTION, "tp": tp}) + "\n" for tp in (1, 2, 4, 8)))
    found = {}
    for words in (["plan", question], ["simulate", "--jsonl", lines]):
        job = folder / f"{words[0]}.yaml"
        subprocess.run([str(binary), *map(str, words), "--kubernetes-job", str(job), "--shards", str(SHARDS)],
                       check=True)
        found[job] = [binary, *words]
    return found


def main():
    parser = options_of(__doc__.splitlines()[0])
    parser.add_argument("--dockerfile", help="instead of the one that build/orrery writes")
    parser.add_argument("--source", type=pathlib.Path, default=ROOT, help="the folder that COPY lines copy from")
    options = parser.parse_args()
    part = Part("image", options.minutes, options.jobs)
    for tool, package in (("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("chroot", "coreutils")):
        part.need(tool, package)
    if os.geteuid() != 0:
        print("image: found a user who is not root; expected root: chroot and debootstrap need it", file=sys.stderr)
        sys.exit(4)
    jobs = written(part.folder / "written")
    text = pathlib.Path(options.dockerfile or part.folder / "written/Dockerfile").read_text()
    kept = part.folder / "Dockerfile"
    if not kept.exists() or kept.read_text() != text:  # what was done followed another Dockerfile
        part.steps.clear()
        kept.write_text(text)
    stages = parse(text, part.folder)

    def work(part):
        image = Image(part, stages, options.source.resolve())
        if image.make():
            for job, single in jobs.items():
                part.step(f"{job.name}: shards and merge as user {stages[-1].user}",
                          lambda j=job, s=single: image.check(j, s))
        return "; no image was built: a chroot took its place"

    run_part(part, work)


main()
