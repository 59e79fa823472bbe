// SPDX-License-Identifier: Apache-2.0
// Knows a program of RL post-training: the stacks that it runs, and what it does between phases.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/base/json/json.h"
#include "sim/base/units/sourced.h"
#include "sim/base/units/units.h"

namespace orrery {

// One release.
struct RlProgram {
  std::string name, release, title;
  std::string training_stack, serving_stack;  // of the catalogue: "megatron-core@0.15"
  // Bytes of whole weights a second at which weights reach the engines beyond what the network
  // takes: tensor by tensor, through the processes of both sides. On shared GPUs by handles to
  // memory, on separate ones by broadcasts.
  Sourced<BytesPerSecond> shared_sync, split_sync;
  Sourced<BytesPerSecond> host_copy;  // of states that leave a GPU for its host or come back
  // Memory traffic of a logit where the program computes probabilities of tokens, forward and
  // backward, and more backward for each sequence that shares the microbatch: their parts are cut
  // out one by one.
  Sourced<double> logit_forward, logit_backward, logit_sequence;
  // How often whole parameters cross between GPU and host so that a reference model takes the
  // policy's place for a while.
  Sourced<double> reference_copies;
  // What a step of an engine takes on the host beyond the engine's own; more where several ranks
  // run it, which the program starts as processes of its own kind.
  Sourced<Seconds> engine_step, engine_ranks;
  bool ranks_ahead = true;    // whether engines of several ranks schedule ahead, where engines do
  Sourced<Seconds> response;  // host's work for one response: reward, batches, buffers
  // Whether ranks are placed by scale-up domain. Else nothing says that ranks of two hosts share
  // one, and what they exchange is taken to cross the network.
  bool places_by_domain = true;
  // Settings of the training stack that the program leaves as its library has them, where scripts
  // of the library set others: {setting: value}, for apply_settings.
  std::optional<JsonValue> training_settings;
};

// catalog_folder/<name>.json: {"name", "title", "shared_sync": {sourced}, ..., "releases":
// [{"release", "training_stack", "serving_stack"}]}. `name` is "nemo-rl" or "nemo-rl@0.5"; without
// a release the newest. Errors name the nearest.
RlProgram load_rl_program(const std::string& name, const std::filesystem::path& catalog_folder);

}  // namespace orrery
