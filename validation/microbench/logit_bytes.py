#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sampler takes of memory for each logit: most that PyTorch's allocator held at once.

    python3 validation/microbench/logit_bytes.py --output FILE

Two samplers over logits of a model in 16 bits, as serving engines try them before they count
blocks of keys and values: one sorts all logits to keep the most likely ones, one draws from all of
them by noise (no sort). A line of JSON for each number of sequences and words. Errors: without a
GPU it ends with exit code 2.
"""
import argparse
import datetime
import json
import subprocess
import sys


def sorted_choice(torch, logits):
    logits = logits.to(torch.float32)
    ordered, order = logits.sort(dim=-1, descending=False)
    share = ordered.softmax(dim=-1)
    sums = torch.cumsum(share, dim=-1, out=share)
    ordered.masked_fill_(sums <= 0.1, -float("inf"))
    logits = logits.scatter_(dim=-1, index=order, src=ordered)
    del ordered, order, share, sums
    return drawn(torch, logits)


def drawn(torch, logits):
    logits = logits.to(torch.float32)
    share = logits.softmax(dim=-1, dtype=torch.float32)
    noise = torch.empty_like(share).exponential_()
    return share.div_(noise).argmax(dim=-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", required=True, help="file of lines of JSON")
    asked = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("logit_bytes.py: no GPU", file=sys.stderr)
        return 2
    lines = []
    for words in (32000, 128256, 151936):
        for sequences in (16, 128, 256, 1024):
            for name, sampler in (("sort", sorted_choice), ("no sort", drawn)):
                torch.cuda.empty_cache()
                logits = torch.randn(sequences, words, device="cuda", dtype=torch.bfloat16)
                before = torch.cuda.memory_allocated() - logits.nbytes
                torch.cuda.reset_peak_memory_stats()
                sampler(torch, logits)
                most = torch.cuda.max_memory_allocated() - before
                lines.append({"sampler": name, "sequences": sequences, "words": words,
                              "bytes_per_logit": round(most / (sequences * words), 2)})
                del logits
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True, check=True).stdout.split()[0]
    about = {"driver": driver, "date": str(datetime.date.today()), "device": torch.cuda.get_device_name(), "torch": torch.__version__,
             "cuda": torch.version.cuda}
    with open(asked.output, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps({**about, **line}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
