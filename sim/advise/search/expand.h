// SPDX-License-Identifier: Apache-2.0
// Splits a part of the grid into smaller parts, and says how little their layouts can take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/advise/search/bound.h"
#include "sim/advise/search/incumbents.h"
#include "sim/advise/search/pass_floors.h"
#include "sim/engine/step/context.h"
#include "sim/engine/step/result.h"

namespace orrery {

// A precision and an optimizer, with the stack as it is under them.
struct NumericRecipe {
  PrecisionRecipe precision = PrecisionRecipe::bf16;
  Optimizer optimizer = Optimizer::adam_fp32;
  Stack stack;
};

// What a search is over. All must outlive it.
struct SearchGround {
  const StepContext& context;
  const Model& model;
  const Job& job;
  const std::vector<NumericRecipe>& recipes;
  const std::vector<SearchSpace>& spaces;  // of each recipe
  const std::vector<StepBound>& bounds;    // of each recipe
  ResolvedDevice device;                   // with the memory that may be used
  Objective objective = Objective::time;
  Watts host_power;  // of all hosts of the job: counts where energy is the objective
  const PassFloors* floors = nullptr;  // none: parts are bounded without them
  const Family& family(const Place& p) const {
    return spaces[static_cast<std::size_t>(p.recipe)]
        .families()[static_cast<std::size_t>(p.family)];
  }
  const NumericRecipe& recipe(const Place& p) const {
    return recipes[static_cast<std::size_t>(p.recipe)];
  }
};

// How much of a part's place is decided; the rest of its point is zero.
enum class Level : std::uint8_t {
  family,     // sizes
  work,       // also micro-batch, sequence parallelism, exchange, and whether ZeRO is 3
  recompute,  // also what runs again
  ranks,      // also shard group and rank order: every collective has its price
  pipeline,   // also schedule and stages; what is left are offload, ZeRO stage and bucket
};

// A part of the grid. No layout of it scores less, takes less time, energy or memory.
struct Part {
  double least = 0;  // score
  Seconds time;
  Joules energy;  // a step of the whole job
  Bytes memory;   // peak
  Level level = Level::family;
  Place place;  // its first layout
  std::int64_t leaves = 0;
};

// What a layout of so much time and energy scores.
double score(const SearchGround& ground, Seconds time, Joules energy);

Bytes peak_memory(const SearchGround& ground, const NumericRecipe& recipe, const Layout& layout);
// A layout that was run.
Found found_of(const SearchGround& ground, const Place& place, const Layout& layout,
               const StepResult& run);

struct Expansion {
  std::vector<Part> parts;
  std::vector<Found> found;
  std::int64_t rejected = 0;  // layouts that do not fit
  std::int64_t pruned = 0;    // layouts whose bound rules them out
};

// What is known when a batch of parts is expanded, and rules parts out.
struct Cutoff {
  const Incumbents& incumbents;
  const Front* front = nullptr;  // asked for
  bool prune = true;             // false: nothing is ruled out
  bool variants = false;         // settings of one shape compete with each other
  bool by_energy = false;        // the front is of energy
  bool rules_out(const Part& part, const std::optional<Shape>& shape = {}) const;
};

// All families of all recipes.
std::vector<Part> whole_grid(const SearchGround& ground);

// Splits a part, or runs its layouts. The parts and layouts that come out, with those rejected and
// pruned, are the part's leaves.
Expansion expand(const SearchGround& ground, const Part& part, const Cutoff& cutoff);

}  // namespace orrery
