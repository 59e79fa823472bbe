// SPDX-License-Identifier: Apache-2.0
// Names the programs by which jobs are started.
#include "workloads/stack/launcher.h"

#include <array>

namespace orrery {
namespace {

constexpr std::array<std::string_view, 15> names = {
    "megatron-lm", "megatron-bridge", "nemo2",          "nemo1",     "megatron-deepspeed",
    "torchtitan",  "automodel",       "nanotron",       "deepspeed", "primus",
    "maxtext",     "neuronx",         "gaudi-megatron", "scripts",   "unpublished"};
static_assert(names[static_cast<std::size_t>(Launcher::unpublished)] == "unpublished");

}  // namespace

std::string_view to_text(Launcher launcher) { return names[static_cast<std::size_t>(launcher)]; }

Launcher launcher_from(const JsonValue& at) { return read_enum<Launcher>(at, names); }

}  // namespace orrery
