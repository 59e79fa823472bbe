// SPDX-License-Identifier: Apache-2.0
// Knows what a kernel is asked for: operation, shapes that are checked and timed, data, and which
// work of a job it would do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hw_models/device.h"
#include "sim/base/json/json.h"
#include "sim/base/work.h"

namespace orrery {

using Sizes = std::vector<std::int64_t>;

// What a candidate is held against: a kernel of today, built and timed as it is.
struct PresentKernel {
  std::string name;
  std::filesystem::path file;  // below validation/kernels, or absolute
  bool host = false;           // runs where there is no GPU
};

// Shapes that are checked, with as many drawn between limits, and shapes that are timed.
struct KernelShapes {
  std::vector<Sizes> check, time;
  std::int64_t drawn = 0;
  Sizes low, high;
};

struct KernelSpec {
  std::string title, operation;
  std::vector<std::string> sizes;  // names: "m", "n", "k"
  std::vector<std::string> data;   // kinds
  KernelShapes gpu, host;
  WorkKind kind = WorkKind::gemm;  // of a job, which it replaces
  std::vector<GemmRole> roles;     // of products
  std::vector<PresentKernel> present;
  SortedJson text;  // as it was read
};

// Operations that the judge has a reference for, with the names of their sizes.
struct KernelOperation {
  const char* name;
  std::vector<std::string> sizes;
};
const std::vector<KernelOperation>& kernel_operations();

// A file, or the name of one that ships. Error at the key that is wrong.
KernelSpec load_kernel_spec(const std::string& file_or_name);
KernelSpec read_kernel_spec(const JsonValue& file);

// A shape between the limits, such as the operation allows: as many heads as whole groups of those
// of keys, no fewer keys than queries, no more of a row than it has.
Sizes drawn_shape(const KernelSpec& spec, const KernelShapes& shapes, std::uint64_t seed,
                  std::uint64_t number);
std::string shape_text(const KernelSpec& spec, const Sizes& shape);  // "m 128, n 256, k 512"

// The work of one launch.
Work work_of(const KernelSpec& spec, const Sizes& shape);

// What no kernel can beat on a device: peaks of the datasheet.
struct KernelLimit {
  double flop = 0, bytes = 0;  // of tensor units; least traffic
  double seconds = 0;          // the longer of both at the peaks
  bool memory = false;         // which of them it is
};
KernelLimit limit_of(const Work& work, const ResolvedDevice& device);

}  // namespace orrery
