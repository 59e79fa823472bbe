# SPDX-License-Identifier: Apache-2.0
"""The RMS norm of today: torch.compile's kernel, which writes to the output itself."""
import torch


@torch.compile(dynamic=False)
def norm(x, weight, y):
    wide = x.float()
    root = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)
    y.copy_(wide * root * weight.float())


def launch(inputs, outputs, sizes):
    norm(inputs[0], inputs[1], outputs[0])
