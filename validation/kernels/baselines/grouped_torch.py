# SPDX-License-Identifier: Apache-2.0
"""The grouped product of today: torch._grouped_mm, which makes a tensor of its own; its copy counts too."""
import torch


def launch(inputs, outputs, sizes):
    rows, weights, starts = inputs
    outputs[0].copy_(torch._grouped_mm(rows, weights.transpose(-2, -1), offs=starts[1:]))
