# SPDX-License-Identifier: Apache-2.0
"""Starts a Slurm of its own for a test: munged, slurmctld and one slurmd a node, all on this machine.

`with Slurm() as slurm:` has it up in seconds and takes every process of it down, however the test
ends: a guard starts the daemons, adopts what they leave behind, and kills it all when the pipe to
the test closes. Nothing of an installation of Slurm is touched: folder, ports, key and socket are
its own. Run as root or as any user; no cgroups, no systemd, no name service. `python3 cluster.py`
alone measures what a task costs.
"""
import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PACKAGES = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client",
            "scontrol": "slurm-client", "scancel": "slurm-client", "squeue": "slurm-client"}
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}
ADOPTS, DIES_WITH_PARENT = 36, 1  # PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG of prctl(2)

# cred_expire: a task that is requeued waits for as long, two minutes by default.
# config_overrides: a node has the processors that are written here, not those of the machine.
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2{scheduler}
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
JobRequeue=1
KillWait={kill_wait}
MaxArraySize={most_tasks}
MinJobAge=3600
SlurmctldTimeout=30
SlurmdTimeout=60
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE OverSubscribe=NO
"""


def missing():
    """What has to be installed, in words; empty where all is there."""
    packages = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool, path=PATH) is None})
    return f"found no Slurm; install it: apt-get install {' '.join(packages)}" if packages else ""


def free_ports(count):
    """Ports that nothing listens on; taken together, so that they differ."""
    with contextlib.ExitStack() as open_sockets:
        found = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


class Slurm:
    """A cluster of `nodes` nodes with `cpus` processors each, of which the machine needs to have none."""
    template = CONFIG  # of slurm.conf

    def __init__(self, nodes=2, cpus=4, gpus=0, most_tasks=1001, kill_wait=5, scheduler=""):
        self.nodes, self.cpus, self.most_tasks, self.kill_wait = nodes, cpus, most_tasks, kill_wait
        self.gpus = gpus  # of each node; files stand for their devices
        self.scheduler = f",{scheduler}" if scheduler else ""
        self.folder = self.guard = self.environment = None

    def __enter__(self):
        lacking = missing()
        if lacking:
            raise RuntimeError(lacking)
        for attempt in range(3):  # a port may be taken by another program before its daemon has it
            try:
                self._start()
                return self
            except RuntimeError:
                self._stop()
                if attempt == 2:
                    raise
            except BaseException:
                self._stop()
                raise
        raise AssertionError

    def __exit__(self, *_):
        self._stop()

    def _start(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        self.folder.chmod(0o755)  # munge wants its socket to be in reach of all
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        ports = free_ports(1 + self.nodes)
        names = [f"node{number}" for number in range(self.nodes)]
        nodes = "\n".join(f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={self.cpus} "
                          f"RealMemory=1 State=UNKNOWN{self._devices()}" for name, port in zip(names, ports[1:]))
        config = self.folder / "slurm.conf"
        config.write_text(self.template.format(
            folder=self.folder, host=socket.gethostname().split(".")[0], ctld=ports[0], user=user_name(), nodes=nodes,
            kill_wait=self.kill_wait, most_tasks=self.most_tasks, scheduler=self.scheduler))
        # What belongs to another Slurm, under which the test may run itself, must not be seen.
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_"))}
        self.environment.update(SLURM_CONF=str(config), PATH=PATH)
        self.guard = subprocess.Popen([sys.executable, __file__, "--guard", self.folder, *names],
                                      stdin=subprocess.PIPE, env=self.environment, start_new_session=True)
        end = time.monotonic() + 30
        while True:
            states = self.run("sinfo", "--noheader", "--Node", "--format=%T", check=False).stdout.split()
            if states == ["idle"] * self.nodes:
                return
            if self.guard.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Slurm did not come up: its nodes are {states}\n{self.logs()}")
            time.sleep(0.05)

    def _devices(self):
        """What a node's line says of its GPUs; the daemons read the rest beside slurm.conf."""
        if not self.gpus:
            return ""
        for number in range(self.gpus):
            (self.folder / f"gpu{number}").touch()
        (self.folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={self.folder}/gpu[0-{self.gpus - 1}]\n")
        return f" Gres=gpu:{self.gpus}"

    def _stop(self):
        if self.guard is not None:
            self.guard.stdin.close()  # tells the guard, as the end of this process would
            self.guard.wait()
            self.guard = None

    def logs(self):
        """The last lines that each daemon wrote."""
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}"
                         for path in sorted(self.folder.glob("*.log")))

    def run(self, *words, check=True, **more):
        """Runs a command, such as sbatch, on this cluster; an error has what the command said."""
        done = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False, **more)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def jobs(self):
        """All jobs that Slurm knows, a dictionary of scontrol's fields each, also those that ended."""
        text = self.run("scontrol", "show", "job", "--oneliner").stdout
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines() if line.startswith("JobId=")]

    def task(self, array, index):
        """An array's task as scontrol shows it; None while it is part of the tasks that wait."""
        for job in self.jobs():
            if job.get("ArrayJobId") == str(array) and job.get("ArrayTaskId") == str(index):
                return job
        return None

    def wait_for(self, true, what, seconds=60):
        """Waits until `true()` is, and returns what it returned."""
        end = time.monotonic() + seconds
        while True:
            found = true()
            if found:
                return found
            if time.monotonic() > end:
                queue = self.run("squeue", "--array", "--all", check=False).stdout
                raise AssertionError(f"waited {seconds} s for {what}\n{queue}{self.logs()}")
            time.sleep(0.1)

    def states(self, job):
        """The states of a job, or of an array's tasks; a task that is requeued stands here once."""
        return [one["JobState"] for one in self.jobs() if str(job) in (one["JobId"], one.get("ArrayJobId"))]

    def wait(self, job, seconds=120):
        """Waits until a job, or each task of an array, has ended; the states they ended in."""
        def ended():
            states = self.states(job)
            return states if states and set(states) <= ENDED else None
        return self.wait_for(ended, f"job {job} to end", seconds)

    def wait_running(self, array, index, seconds=60):
        return self.wait_for(lambda: (self.task(array, index) or {}).get("JobState") == "RUNNING",
                             f"task {array}_{index} to run", seconds)

    def requeue(self, array, index):
        """Takes a running task off its node, as a preemption does, to run again later."""
        self.run("scontrol", "requeue", f"{array}_{index}")

    def kill(self, array, index, sign="KILL"):
        """Sends a signal to a task's processes; Slurm takes KILL as the end of the task."""
        self.run("scancel", f"--signal={sign}", "--full", f"{array}_{index}")


def user_name():
    """Slurm asks the machine for the user of its daemons by name."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise RuntimeError(f"found a user {os.geteuid()} without a name, which Slurm does not start for; "
                           "expected a line of /etc/passwd") from None


# The guard ----------------------------------------------------------------------------------------

def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def children_of(parent):
    """All processes below one, by their ids: the tree that /proc shows."""
    below = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    below.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [parent]
    while queue:
        more = below.get(queue.pop(), [])
        found += more
        queue += more
    return found


def guard(folder, names):
    """Runs the daemons until standard input ends, then kills all that came of them and the folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prctl(ADOPTS, 1)  # steps of jobs leave their parents; they become children of this process

    def tie():
        prctl(DIES_WITH_PARENT, signal.SIGKILL)

    def daemon(*words):
        with open(folder / f"{words[0]}.out.log", "ab") as out:
            return subprocess.Popen([*map(str, words)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    start_new_session=True, preexec_fn=tie, cwd=folder)
    try:
        daemon("munged", "--foreground", f"--key-file={folder}/munge.key", f"--socket={folder}/munge.socket",
               f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munge.log")
        end = time.monotonic() + 10
        while not (folder / "munge.socket").exists() and time.monotonic() < end:
            time.sleep(0.02)
        daemon("slurmctld", "-D", "-i")
        for name in names:
            daemon("slurmd", "-D", "-N", name)
        sys.stdin.buffer.read()
    finally:
        # What is killed may have started more meanwhile: until nothing is left, not even a dead process.
        end = time.monotonic() + 30
        with contextlib.suppress(ChildProcessError):
            while time.monotonic() < end:
                for process in children_of(os.getpid()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                while os.waitpid(-1, os.WNOHANG)[0] != 0:
                    pass
                time.sleep(0.01)
        shutil.rmtree(folder, ignore_errors=True)


# The measurement ----------------------------------------------------------------------------------

def measure(count=100, cpus=4):
    """Prints what it takes to run an array of `count` tasks that do nothing."""
    started = time.monotonic()
    with Slurm(cpus=cpus) as slurm, tempfile.TemporaryDirectory() as scratch:
        print(f"{slurm.run('sbatch', '--version').stdout.strip()}, {slurm.nodes} nodes of {slurm.cpus} processors "
              f"on {os.cpu_count()} real ones: up in {time.monotonic() - started:.1f} s")
        script = pathlib.Path(scratch) / "true.sbatch"
        script.write_text("#!/bin/sh\nexec true\n")
        started = time.monotonic()
        array = slurm.run("sbatch", "--parsable", f"--array=0-{count - 1}", "--output=/dev/null", script).stdout.strip()
        submitted = time.monotonic() - started
        slurm.wait(array, 600)
        ended = time.monotonic() - started
        print(f"{count} tasks of true: submitted in {submitted:.3f} s, done in {ended:.1f} s, "
              f"{count / ended:.1f} a second, {1000 * ended / count:.0f} ms each")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--guard"]:
        guard(pathlib.Path(sys.argv[2]), sys.argv[3:])
    else:
        measure(*map(int, sys.argv[1:]))
