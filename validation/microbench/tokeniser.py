#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a tokeniser on prompts, as a server runs it before its engine sees a request.

Trains a byte-level BPE on text that every Python has (its own library), so that nothing is fetched,
and encodes prompts that it has not seen one at a time, on one core:

    pip install tokenizers
    validation/microbench/tokeniser.py --out tokeniser.csv
"""

import argparse
import csv
import datetime
import pathlib
import platform
import random
import statistics
import sysconfig
import time

import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def library_texts() -> list[str]:
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    files = sorted(p for p in root.rglob("*.py") if "site-packages" not in p.parts)
    return [p.read_text(encoding="utf-8", errors="ignore") for p in files]


def trained(texts: list[str], entries: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=entries, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def seconds_each(tokenizer: Tokenizer, prompts: list[str]) -> list[float]:
    """Seconds a token of each prompt."""
    out = []
    for prompt in prompts:
        start = time.perf_counter()
        tokens = len(tokenizer.encode(prompt).ids)
        out.append((time.perf_counter() - start) / tokens)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="CSV to write")
    parser.add_argument("--entries", type=int, default=50000, help="of the vocabulary")
    parser.add_argument("--repeats", type=int, default=30, help="prompts of each length")
    args = parser.parse_args()

    draw = random.Random(1)
    texts = library_texts()
    draw.shuffle(texts)
    half = len(texts) // 2
    tokenizer = trained(texts[:half], args.entries)
    unseen = tokenizer.encode("\n".join(texts[half:])).ids
    rows = []
    for tokens in (128, 1024, 4096, 8192):
        for kind in ("text", "random"):
            prompts = []
            for _ in range(args.repeats + 3):
                if kind == "text":
                    at = draw.randrange(len(unseen) - tokens)
                    ids = unseen[at : at + tokens]
                else:  # tokens drawn at random, as clients of benchmarks do
                    ids = [draw.randrange(256, tokenizer.get_vocab_size()) for _ in range(tokens)]
                prompts.append(tokenizer.decode(ids))
            each = sorted(seconds_each(tokenizer, prompts)[3:])
            rows.append(
                {
                    "date": datetime.date.today().isoformat(),
                    "processor": processor(),
                    "library": f"tokenizers {tokenizers.__version__}",
                    "vocabulary": tokenizer.get_vocab_size(),
                    "prompts": kind,
                    "tokens": tokens,
                    "median_us_a_token": round(1e6 * statistics.median(each), 3),
                    "p10_us_a_token": round(1e6 * each[len(each) // 10], 3),
                    "p90_us_a_token": round(1e6 * each[9 * len(each) // 10], 3),
                }
            )
    with open(args.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(row["prompts"], row["tokens"], row["median_us_a_token"], "us a token")


if __name__ == "__main__":
    main()
