// SPDX-License-Identifier: Apache-2.0
// Knows every file in which a run says something of itself: one door to all readers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "sim/observe/collective/nccl_tests.h"
#include "sim/observe/counters/counters.h"
#include "sim/observe/log/run_log.h"
#include "sim/observe/profile/profile.h"

namespace orrery::observe {

enum class ObservedKind : std::uint8_t { log, profile, collectives, counters };
inline constexpr auto observed_text =
    enum_names<ObservedKind>({"log", "profile", "collectives", "counters"});

// In the order of ObservedKind.
using Observed = std::variant<RunLog, Profile, CollectiveTests, CounterLog>;
inline ObservedKind kind_of(const Observed& observed) {
  return static_cast<ObservedKind>(observed.index());
}

// Reads a file of any kind, plain or packed. Its content tells the kind; its name does not count.
// Prints nothing. Error, in one line: a file that is none of the kinds, or a broken one.
Observed read_observed(const std::filesystem::path& file);
// What the file begins like; nothing where it can be a log alone, or is none of the kinds. JSON
// counts as a profile.
std::optional<ObservedKind> kind_by_head(const std::filesystem::path& file);
// Whether a line of a text is a step's, as logs of programs have them.
bool tells_any_step(const std::filesystem::path& file);

}  // namespace orrery::observe
