// SPDX-License-Identifier: Apache-2.0
// Lays engines over hosts, and joins their processes.
#include "sim/launch/serving/hosts.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/launch/serving/engine_writer.h"

namespace orrery {
namespace {

// Ports of rendezvous: any that is free does.
constexpr int rendezvous_port = 20000, data_parallel_port = 13345;

bool is_vllm(const ServedEngine& e) { return e.policy.scheduler == SchedulerKind::vllm; }
// Ranks that share a request's attention.
std::int64_t unit(const EngineLayout& l) { return l.tp * l.pp; }

[[noreturn]] void refuse(const ServedDeployment& d, const std::string& flag,
                         const std::string& found, const std::string& expected) {
  throw Error(
      {.file = flag,
       .path = "",
       .found = fmt::format("{} of {} on hosts of {} GPUs", found, d.stack.title, d.gpus_per_host),
       .expected = expected});
}

}  // namespace

EngineHosts engine_hosts(const ServedDeployment& d, const ServedEngine& e) {
  const EngineLayout& l = e.layout;
  const std::int64_t host = std::max<std::int64_t>(1, d.gpus_per_host), gpus = l.gpus();
  const bool whole = l.attention_dp > 1 && unit(l) <= host;
  std::int64_t hosts = (gpus + host - 1) / host;
  while (gpus % hosts != 0 || (whole && l.attention_dp % hosts != 0)) ++hosts;
  const std::int64_t used = gpus / hosts;
  return {.hosts = hosts, .gpus = used, .engines = hosts > 1 ? 1 : host / used};
}

std::int64_t hosts_of_all(const EngineHosts& hosts, std::int64_t replicas) {
  return hosts.hosts > 1 ? hosts.hosts * replicas : (replicas + hosts.engines - 1) / hosts.engines;
}

std::vector<std::string> host_flags(const ServedDeployment& d, const ServedEngine& e,
                                    HostFront front, const std::string& flag) {
  const EngineLayout& l = e.layout;
  const EngineHosts over = engine_hosts(d, e);
  if (over.hosts == 1 || e.policy.scheduler == SchedulerKind::trtllm) return {};
  const std::string hosts = std::to_string(over.hosts);
  if (!is_vllm(e))
    return {"--nnodes",         hosts,
            "--node-rank",      "$NODE_RANK",
            "--dist-init-addr", fmt::format("$HEAD:{}", rendezvous_port)};
  const auto release = engine_release(d.stack);
  if (l.attention_dp == 1) {
    if (release < std::pair(0, 12))
      refuse(d, flag, fmt::format("TP{} PP{}", l.tp, l.pp),
             "an engine on one host, or vLLM 0.12 or later: before, hosts are joined by a Ray "
             "cluster that is started beside it");
    return {"--nnodes", hosts, "--node-rank", "$NODE_RANK", "--master-addr", "$HEAD"};
  }
  if (unit(l) > over.gpus)
    refuse(d, flag, fmt::format("DP{} TP{} PP{}", l.attention_dp, l.tp, l.pp),
           "ranks of attention that fit a host each: vLLM starts no others on several hosts");
  const std::string local = std::to_string(l.attention_dp / over.hosts);
  std::vector<std::string> flags = {
      "--data-parallel-size-local", local,
      "--data-parallel-address",    "$HEAD",
      "--data-parallel-rpc-port",   std::to_string(data_parallel_port),
      "--data-parallel-start-rank", fmt::format("$((NODE_RANK * {}))", local)};
  if (front == HostFront::each) flags.emplace_back("--data-parallel-hybrid-lb");
  return flags;
}

std::string wait_flag(const ServedDeployment& d, const ServedEngine& e, HostFront front) {
  const bool waits = is_vllm(e) && engine_hosts(d, e).hosts > 1 &&
                     (front == HostFront::first || e.layout.attention_dp == 1);
  return waits ? "--headless" : "";
}

}  // namespace orrery
