// SPDX-License-Identifier: Apache-2.0
// Knows how programs are told a model's shape: layers, heads, widths, experts.
#pragma once

#include <string>
#include <vector>

#include "sim/launch/flags.h"
#include "workloads/layout/job.h"
#include "workloads/model/model.h"
#include "workloads/stack/stack.h"

namespace orrery {

struct ShapeFlags {
  std::vector<LaunchFlag> flags;
  std::vector<std::string> missing;  // sentences: parts of the shape that no flag says
};

// Megatron-LM's flags, as arguments.py of the time of Megatron-Core 0.15 has them. Rotary bases,
// routers' scores and what else a shape does not tell are left to the reader.
ShapeFlags megatron_shape(const Model& model, const Job& job, const Stack& stack);

// MaxText's keys over base.yml, where its block of Llama or Mixtral is the model's; else empty, and
// the model's own file of src/maxtext/configs/models must say it.
ShapeFlags maxtext_shape(const Model& model);

// "80 layers, 8,192 wide, 64 heads of 128 with 8 of keys and values, feed-forward 28,672,
// vocabulary 128,256": what a recipe by name is checked against.
std::string shape_in_words(const Model& model);

}  // namespace orrery
