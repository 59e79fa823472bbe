// SPDX-License-Identifier: Apache-2.0
// Knows how serving engines lie over hosts, and what each engine's processes on several are told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/launch/serving/engine.h"

namespace orrery {

struct EngineHosts {
  std::int64_t hosts = 1;    // of an engine
  std::int64_t gpus = 1;     // of each of them that it uses
  std::int64_t engines = 1;  // that a host has room for
};

// As few hosts as hold an engine with equal shares; ranks of attention with requests of their own
// lie on one host where they fit one.
EngineHosts engine_hosts(const ServedDeployment& deployment, const ServedEngine& engine);

// Hosts of all engines of a kind.
std::int64_t hosts_of_all(const EngineHosts& hosts, std::int64_t replicas);

// How an engine on several hosts hands out requests: a first host does for all, or every host for
// its own ranks of attention.
enum class HostFront : std::uint8_t { first, each };

// Flags that processes of an engine on several hosts get beside their own, as shell words. HEAD is
// the first host, NODE_RANK counts hosts; WAIT_FLAGS holds what hosts without a front are told
// (wait_flags). Error at `flag` where the engine has no way.
std::vector<std::string> host_flags(const ServedDeployment& deployment, const ServedEngine& engine,
                                    HostFront front, const std::string& flag);
// A flag that all hosts but the first get; empty: none.
std::string wait_flag(const ServedDeployment& deployment, const ServedEngine& engine,
                      HostFront front);

}  // namespace orrery
