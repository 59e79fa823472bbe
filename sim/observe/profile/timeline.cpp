// SPDX-License-Identifier: Apache-2.0
// Keeps events and texts, and sorts calls by what they do.
#include "sim/observe/profile/timeline.h"

#include <array>
#include <cmath>

namespace orrery::observe {
namespace {

struct CallPart {
  std::string_view part;
  HostWork work;
};
// The first that fits counts.
constexpr std::array call_parts = {
    CallPart{"StreamSynchronize", HostWork::synchronise},
    CallPart{"DeviceSynchronize", HostWork::synchronise},
    CallPart{"EventSynchronize", HostWork::synchronise},
    CallPart{"CtxSynchronize", HostWork::synchronise},
    CallPart{"MallocAsync", HostWork::runtime},
    CallPart{"FreeAsync", HostWork::runtime},
    CallPart{"Malloc", HostWork::allocate},
    CallPart{"MemAlloc", HostWork::allocate},
    CallPart{"MemCreate", HostWork::allocate},
    CallPart{"MemMap", HostWork::allocate},
    CallPart{"MemUnmap", HostWork::allocate},
    CallPart{"MemRelease", HostWork::allocate},
    CallPart{"HostAlloc", HostWork::allocate},
    CallPart{"HostRegister", HostWork::allocate},
    CallPart{"Free", HostWork::allocate},
    CallPart{"Launch", HostWork::launch},
    CallPart{"MemcpyAsync", HostWork::launch},
    CallPart{"MemsetAsync", HostWork::launch},
    CallPart{"Memcpy2DAsync", HostWork::launch},
    CallPart{"MemcpyBatchAsync", HostWork::launch},
    CallPart{"MemcpyHtoDAsync", HostWork::launch},
    CallPart{"MemcpyDtoHAsync", HostWork::launch},
    CallPart{"MemcpyDtoDAsync", HostWork::launch},
    CallPart{"Memcpy", HostWork::synchronise},  // a copy that waits
    CallPart{"Memset", HostWork::launch},
};

}  // namespace

std::uint32_t Names::of(std::string_view text) {
  constexpr std::size_t longest = 2000, most_bytes = std::size_t{256} << 20U;
  text = text.substr(0, longest);
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  constexpr std::string_view more = "(more names)";
  if (bytes_ > most_bytes && text != more) return of(more);
  bytes_ += text.size() + sizeof(std::string);
  const auto number = static_cast<std::uint32_t>(texts_.size());
  const auto at = numbers_.emplace(std::string(text), number).first;
  texts_.push_back(&at->first);
  return number;
}

void Timeline::add(const DeviceEvent& event) {
  if (device.size() < most_device)
    device.push_back(event);
  else
    ++left_out;
}

void Timeline::add(const HostEvent& event) {
  if (host.size() < most_host)
    host.push_back(event);
  else
    ++left_out;
}

void Timeline::add(const Launch& launch) {
  if (launches.size() < most_host) launches.push_back(launch);
}

void Timeline::add(const Annotation& annotation) {
  if (annotations.size() < most_device) annotations.push_back(annotation);
}

std::uint32_t Timeline::shape_number(const LaunchShape& shape) {
  const std::array<std::int64_t, 9> key = {
      shape.grid[0],
      shape.grid[1],
      shape.grid[2],
      shape.block[0],
      shape.block[1],
      shape.block[2],
      shape.shared_bytes.value_or(-1),
      shape.registers.value_or(-1),
      shape.occupancy ? std::llround(*shape.occupancy * 1000) : -1};
  constexpr std::size_t most = 1'000'000;
  if (shapes.size() >= most) return 0;
  const auto [at, is_new] =
      shape_numbers_.try_emplace(key, static_cast<std::uint32_t>(shapes.size()));
  if (is_new) shapes.push_back(shape);
  return at->second;
}

std::uint32_t Timeline::collective_number(const CollectiveCall& call) {
  constexpr std::size_t most = 1'000'000;
  if (collectives.size() >= most) return 0;
  const auto [at, is_new] =
      collective_numbers_.try_emplace(call, static_cast<std::uint32_t>(collectives.size()));
  if (is_new) collectives.push_back(call);
  return at->second;
}

HostWork work_of_call(std::string_view name) {
  for (const CallPart& row : call_parts)
    if (name.find(row.part) != std::string_view::npos) return row.work;
  return HostWork::runtime;
}

HostWork work_of_operation(std::string_view name) {
  constexpr std::array<std::string_view, 3> loaders = {"enumerate(DataLoader)", "DataLoader",
                                                       "dataloader"};
  for (const std::string_view loader : loaders)
    if (name.find(loader) != std::string_view::npos) return HostWork::data_loader;
  if (name == "aten::item" || name == "aten::_local_scalar_dense" || name == "aten::is_nonzero")
    return HostWork::item;
  return HostWork::framework;
}

bool is_launch(std::string_view name) { return work_of_call(name) == HostWork::launch; }

}  // namespace orrery::observe
