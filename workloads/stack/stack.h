// SPDX-License-Identifier: Apache-2.0
// Holds a software stack at one of its releases, and says what of it holds for a layout.
#pragma once

#include <compare>
#include <filesystem>
#include <string>
#include <vector>

#include "workloads/release/context.h"
#include "workloads/stack/communication.h"
#include "workloads/stack/host.h"
#include "workloads/stack/kernels.h"
#include "workloads/stack/launcher.h"
#include "workloads/stack/memory.h"
#include "workloads/stack/offers.h"
#include "workloads/stack/serving.h"
#include "workloads/stack/sharding.h"

namespace orrery {

struct LayerClass;

// Everything about a framework release that a step's time and memory depend on.
struct Stack {
  // Compiled once: it is long, and units all over the program hold one.
  Stack();
  Stack(const Stack&);
  Stack(Stack&&) noexcept;
  Stack& operator=(const Stack&);
  Stack& operator=(Stack&&) noexcept;
  ~Stack();

  std::string name;     // "megatron-core"
  std::string release;  // "0.15"
  std::string asked;    // for a release that is not listed, "0.16"; empty: none, or the listed one
  // Later than all that are listed: nothing is known of it. One between two of them runs as the
  // earlier, since releases state what they changed.
  bool asked_is_later = false;
  std::string date;  // of the release, "2025-11"
  std::string title, framework;
  // How it is started, and the release of that program whose settings it has: this one, or of a
  // stack that names no launcher the one that it is based on.
  Launcher launcher = Launcher::scripts;
  std::string flags_release;
  std::string launch_note;  // a sentence to whoever pastes the flags
  std::string stands_in;    // for which program, where it is none's own; else empty
  bool unscripted = false;  // set as most launch programs set models: none of them names this one
  std::vector<std::string> platforms;  // of devices that it runs on; empty: not stated
  std::vector<std::string> changes;    // sentences: what this release changed

  StackKernels kernels;
  StackDropout dropout;
  StackHost host;
  StackCommunication communication;
  StackSharding sharding;
  StackMemory memory;
  StackServing serving;
  StackRecompute recompute;
  StackDefaults defaults;
  StackChoices choices;
  bool has(Schedule s) const { return StackChoices::allows(choices.schedules, s); }
};

// `name` is "megatron-core", "megatron-core@0.12" or a path. Files: catalog_folder/<name>.json with
// "base" settings, "releases" in order of date (each overlays those before it) and in each "when"
// lists: [{"architecture": .., "device": .., "model": .., "family": .., "precision": .., "moe": ..,
// "task": .., "use": [..], "set": {...}}], where "use" names entries of the file's "parts". Without
// a release the newest is taken; one that is not listed is the last before it, or the first.
Stack load_stack(const std::string& name, const StackContext& context,
                 const std::filesystem::path& catalog_folder);
// The stack at each of its listed releases up to that of `name`, in order of date.
std::vector<Stack> load_releases(const std::string& name, const StackContext& context,
                                 const std::filesystem::path& catalog_folder);

// How kernels of this layout reach the device. Graphs of parts of a layer cannot hold a layer that
// runs again as a whole, nor the modules that the stack lists.
LaunchMode launch_mode(const Stack& stack, const Layout& layout);
// Norms of a layer that are modules of their own, which recompute of "layernorm" runs again. It
// skips those inside linear layers; where graphs_refuse names parts of attention, graphs leave the
// norm before attention as it is too.
struct NormModules {
  bool mixer = false, ffn = false;  // the norm before each
};
NormModules norm_modules(const Stack& stack, const Layout& layout, const LayerClass& layer);

// Whether gradients are reduced under the last backward, and parameters gathered under the first
// forward, with the layout's optimizer.
bool overlaps_gradients(const Stack& stack, const Layout& layout);
bool overlaps_parameters(const Stack& stack, const Layout& layout);
// Shares of collectives that show, in training: with what the layout allows the stack to overlap.
double tensor_exposed(const Stack& stack, const Layout& layout);
// Pieces of a product whose input is gathered (a ring: one of each rank's rows), and of one whose
// output is scattered; 1 where products are not cut. Source: Transformer Engine,
// transformer_engine/pytorch/module/base.py, initialize_ub.
std::int64_t gathered_pieces(const Stack& stack, const Layout& layout);
std::int64_t scattered_pieces(const Stack& stack, const Layout& layout);
// Whether a pass' expert exchange runs beside another microbatch's pass. DualPipe is made for that.
// Megatron-Core interleaves the operations of a forward and a backward (from 0.14 on): of a stage's
// chunks, so that pipelines need several, and of layers that are not run again as a whole.
bool exchange_beside_passes(const Stack& stack, const Layout& layout);
double expert_exposed(const Stack& stack, const Layout& layout, double microbatches);

std::vector<std::string> stack_names(const std::filesystem::path& catalog_folder);
std::vector<std::string> stack_releases(const std::string& name,
                                        const std::filesystem::path& catalog_folder);
// The last listed release that is not later than the one that `name` asks for ("nemo@25.10"), the
// newest where it asks for none; empty: all are later.
std::string known_release(const std::string& name, const std::filesystem::path& catalog_folder);

}  // namespace orrery
