# SPDX-License-Identifier: Apache-2.0
"""The top-k of today: torch.topk; its results are copied, since its places have 64 bits."""
import torch


def launch(inputs, outputs, sizes):
    values, places = torch.topk(inputs[0], sizes["k"])
    outputs[0].copy_(values)
    outputs[1].copy_(places)
