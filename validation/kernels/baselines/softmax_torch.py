# SPDX-License-Identifier: Apache-2.0
"""The softmax of today: PyTorch's own kernel into the output."""
import torch


def launch(inputs, outputs, sizes):
    torch.ops.aten._softmax.out(inputs[0], -1, False, out=outputs[0])
