# SPDX-License-Identifier: Apache-2.0
"""Quantising of today: torch.compile's kernel, for widths of whole blocks."""
import torch


@torch.compile(dynamic=False)
def quantise(x, q, scale):
    blocks = x.float().view(x.shape[0], -1, 128)
    unit = blocks.abs().amax(-1).clamp(min=1e-30) / 448
    scale.copy_(unit)
    q.copy_((blocks / unit.unsqueeze(-1)).clamp(-448, 448).view(x.shape).to(torch.float8_e4m3fn))


def launch(inputs, outputs, sizes):
    quantise(inputs[0], outputs[0], outputs[1])
