// SPDX-License-Identifier: Apache-2.0
// Knows by how much a checkpoint that is being written slows the steps beside it.
#pragma once

#include "sim/engine/scenario.h"
#include "sim/outcome/months/goodput.h"

namespace orrery {

// Share of its speed that the job loses while every accelerator's share of a host has this flow:
// its step, `undisturbed` without the flow, with what NICs and the host's memory have left beside
// it. A flow takes what it needs and at most half, as max-min fair sharing gives two flows of one
// link. Training that sends nothing by those NICs and offloads nothing loses nothing.
double slowed_by(const Scenario& scenario, Seconds undisturbed, const CheckpointFlow& flow);

}  // namespace orrery
