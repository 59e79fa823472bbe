// SPDX-License-Identifier: Apache-2.0
// Knows the flags with which many processes share a question, and how a command follows them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/app/line/command.h"
#include "sim/app/shards/shared_work.h"

namespace orrery {

inline constexpr const char* results_flag = "--results";
inline constexpr const char* shard_flag = "--shard";
inline constexpr const char* share_group = "Many processes";  // heading of the help

std::vector<Flag> shard_flags();

// Whether results go into a folder. Error for --shard without one, and beside it for flags that say
// how an answer is written: a shard writes none.
bool is_shared(const Given& given);

// Makes the folder or goes on in it, and does this process's part: a command's own `share` says
// how. `lines`: the user's file of lines; empty: there is none.
ExitCode begin_shared(const Given& given, const SharedRun& run, const std::string& lines,
                      const std::function<ExitCode(SharedWork&)>& share);

// The end of a part: what was done goes to stderr.
ExitCode end_part(SharedWork& work, const CommonFlags& common);

}  // namespace orrery
