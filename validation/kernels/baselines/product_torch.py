# SPDX-License-Identifier: Apache-2.0
"""The product of today: torch.mm into the output."""
import torch


def launch(inputs, outputs, sizes):
    torch.mm(inputs[0], inputs[1].t(), out=outputs[0])
