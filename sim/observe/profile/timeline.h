// SPDX-License-Identifier: Apache-2.0
// Knows the events of a profile in few bytes each, from whichever file they came.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/observe/profile/profile.h"

namespace orrery::observe {

// Texts by number: each is kept once, its first two thousand bytes. Texts beyond 256 MiB share one.
class Names {
 public:
  std::uint32_t of(std::string_view text);
  const std::string& operator[](std::uint32_t number) const { return *texts_[number]; }
  std::size_t size() const { return texts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<const std::string*> texts_;
  std::size_t bytes_ = 0;
};

// Times count in 1e-9 s of the profile's own clock.
using Nanoseconds = std::int64_t;
inline Seconds in_seconds(Nanoseconds time) { return nanoseconds(static_cast<double>(time)); }

struct DeviceEvent {
  Nanoseconds begin = 0, end = 0;
  std::uint32_t name = 0;
  std::uint32_t detail = 0;       // of Timeline::shapes, or of collectives; 0: none
  std::uint32_t correlation = 0;  // with the call that launched it; 0: not known
  std::uint32_t operation = 0;    // of the framework, that launched it; 0: not known
  std::uint16_t stream = 0;
  std::uint8_t device = 0;
  KernelClass what = KernelClass::other;
};

struct HostEvent {
  Nanoseconds begin = 0, end = 0;
  std::uint32_t name = 0;
  std::uint16_t thread = 0;
  HostWork work = HostWork::unknown;
};

struct Launch {
  std::uint32_t correlation = 0;
  std::uint16_t thread = 0;
  Nanoseconds begin = 0;
};

struct Annotation {
  Nanoseconds begin = 0, end = 0;
  std::uint32_t name = 0;
};

// What a collective's kernel says of its call.
struct CollectiveCall {
  std::string name, group, group_name, type;
  std::int64_t sent = -1, received = -1;  // elements; -1: not said
  int ranks = -1;
  auto operator<=>(const CollectiveCall&) const = default;
};

struct HostTotal {
  std::size_t count = 0;
  double total = 0;  // in units of Nanoseconds: sums of strangers' numbers may be large
};

struct Timeline {
  Names names;
  std::vector<DeviceEvent> device;
  std::vector<HostEvent> host;
  std::vector<Launch> launches;
  std::vector<Annotation> annotations;
  std::vector<LaunchShape> shapes{1};          // the first stands for "none"
  std::vector<CollectiveCall> collectives{1};  // the same
  std::map<std::uint32_t, HostTotal> runtime, operations;
  // Of operations that are products: their type, by the number that their kernels bear.
  std::unordered_map<std::uint32_t, std::uint32_t> product_types;
  std::map<std::array<std::uint32_t, 3>, std::size_t> product_shapes;  // operation, type, shapes
  std::uint64_t events = 0, left_out = 0;
  std::int64_t most_allocated = -1, most_reserved = -1;  // bytes

  // Events beyond these are counted and not kept: memory stays within two gigabytes.
  static constexpr std::size_t most_device = 12'000'000, most_host = 24'000'000;
  void add(const DeviceEvent& event);
  void add(const HostEvent& event);
  void add(const Launch& launch);
  void add(const Annotation& annotation);

  std::uint32_t shape_number(const LaunchShape& shape);
  std::uint32_t collective_number(const CollectiveCall& call);

 private:
  std::map<std::array<std::int64_t, 9>, std::uint32_t> shape_numbers_;
  std::map<CollectiveCall, std::uint32_t> collective_numbers_;
};

// Of a call of CUDA's runtime or driver, or of HIP's.
HostWork work_of_call(std::string_view name);
// Of an operation or an annotation of the framework: data loaders and `.item()` are told apart.
HostWork work_of_operation(std::string_view name);
// Whether a call starts work of the device.
bool is_launch(std::string_view name);

}  // namespace orrery::observe
