# SPDX-License-Identifier: Apache-2.0
"""Writes a run's answers into its folder: Parquet files of points in order, each whole or not there."""
from __future__ import annotations

import fcntl
import json
import os
import pathlib
import socket
import time
from typing import Any

from orrery.ask import Path
from orrery.batches import Answered, Run, needed, table_of
from orrery.errors import InputError, MachineFailed
from orrery.results import KEY, Part, check_same, fitted, parts_in, read_run, told

_MOST_WAITING = 4 * 2**20  # bytes of answers that become one file
_LONGEST_WAIT = 10.0  # seconds until an answer is on the disk
_ROW_GROUP = 65_536
_LARGEST_ASKED = 64 * 1024  # characters of a question that run.json repeats


class Folder:
    """Where a run writes. One sweep at a time; what is there already must be of the same run."""

    def __init__(self, folder: Path, run: Run, count: int | None, asked: Any) -> None:
        self.path = pathlib.Path(folder)
        self._run = run
        self._waiting: dict[int, tuple[float, Answered]] = {}
        self._lock: int | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            self._begin(count, asked)
        except OSError as error:
            self.close()
            raise failed(self.path, error) from None
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 200).decode(errors="replace").strip()
            os.close(lock)
            raise InputError({"file": str(self.path), "found": f"another sweep that writes there ({holder})",
                              "expected": "a folder of its own, or that one's end"}) from None
        self._lock = lock
        os.ftruncate(lock, 0)
        os.write(lock, f"process {os.getpid()} of {socket.gethostname()}\n".encode())

    def _begin(self, count: int | None, asked: Any) -> None:
        for left in self.path.glob(".part-*.tmp"):  # of a process that died while it wrote
            left.unlink()
        run, file = self._run, self.path / "run.json"
        self.parts = parts_in(self.path)
        if file.exists():
            check_same(str(file), read_run(self.path), run)
        elif self.parts:
            raise InputError({"file": str(self.path), "found": "parts without run.json",
                              "expected": "an empty folder, or one that a sweep began"})
        else:
            short = len(json.dumps(asked)) <= _LARGEST_ASKED
            self._head = {"orrery": {"version": run.version, "catalogue": run.catalogue, "command": run.command,
                                     "seed": run.seed},
                          "form": "parquet", "question": run.question, "points": count,
                          "settings": run.common, "asked": asked if short else None}
            self._write_head()
        for part in self.parts:
            check_same(str(part.file), told(part.file), run)
        self._head = read_run(self.path)

    def _write_head(self) -> None:
        write_whole(self.path / "run.json", (json.dumps(self._head, indent=2) + "\n").encode())

    def ended(self, count: int) -> None:
        """How many rows there are: an iterator's, or more than there were."""
        if self._head["points"] != count:
            self._head["points"] = count
            try:
                self._write_head()
            except OSError as error:
                raise failed(self.path / "run.json", error) from None

    @property
    def waiting_rows(self) -> int:
        return sum(answered.end - answered.begin for _, answered in self._waiting.values())

    def add(self, answered: Answered) -> None:
        self._waiting[answered.begin] = (time.monotonic(), answered)

    def write(self, all_of_it: bool = False) -> None:
        """Writes answers that follow one another, where they are many or have waited long."""
        following: list[tuple[float, Answered]] = []
        for begin in sorted(self._waiting):
            if following and following[-1][1].end != begin:
                self._write_some(following, all_of_it)
                following = []
            following.append(self._waiting[begin])
            if sum(len(answered.table) for _, answered in following) >= _MOST_WAITING:
                self._write_some(following, True)
                following = []
        self._write_some(following, all_of_it)

    def _write_some(self, following: list[tuple[float, Answered]], now: bool) -> None:
        if following and (now or time.monotonic() - min(since for since, _ in following) >= _LONGEST_WAIT):
            self._write_part([answered for _, answered in following])
            for _, answered in following:
                del self._waiting[answered.begin]

    def _write_part(self, answers: list[Answered]) -> None:
        pyarrow = needed("pyarrow")
        tables = [table_of(answered.table) for answered in answers]
        begin, end = answers[0].begin, answers[-1].end
        schema = tables[-1].schema  # an iterator's later rows may have more columns
        table = pyarrow.concat_tables([fitted(one, schema) for one in tables])
        if "point" not in schema.names:
            table = table.add_column(0, "point", pyarrow.array(range(begin + 1, end + 1), pyarrow.int64()))
        points = sum(answered.points for answered in answers) % 2**64
        run = self._run
        said = {"version": run.version, "catalogue": run.catalogue, "command": run.command,
                "question": run.question, "from": begin + 1, "to": end, "points": f"{points:016x}",
                "errors": sum(answered.errors for answered in answers),
                "seconds": round(sum(answered.seconds for answered in answers), 6)}
        table = table.replace_schema_metadata({KEY: json.dumps(said).encode()})
        hashed = said["points"] if points else run.question
        file = self.path / f"part-{begin + 1:012d}-{end:012d}-{hashed}.parquet"
        try:
            write_whole(file, parquet_of(table))
        except OSError as error:
            raise failed(file, error) from None
        self.parts.append(Part(begin, end, str(hashed), file))

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def parquet_of(table: Any) -> Any:
    pyarrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", row_group_size=_ROW_GROUP)
    return sink.getvalue()


def write_whole(file: pathlib.Path, content: Any) -> None:
    """Beside and renamed: the file is whole or not there, also after a loss of power."""
    beside = file.with_name(f".{file.name}.tmp")
    try:
        with open(beside, "wb", buffering=0) as out:
            rest = memoryview(content)
            while rest:
                rest = rest[out.write(rest):]
            os.fsync(out.fileno())
        os.replace(beside, file)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def failed(file: pathlib.Path, error: OSError) -> MachineFailed:
    return MachineFailed({"file": str(file), "found": os.strerror(error.errno) if error.errno else str(error),
                          "expected": "a disk that takes it; the same sweep goes on with what is there"})
