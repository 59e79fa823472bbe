// SPDX-License-Identifier: Apache-2.0
// Knows how candidates and the judge are built: by nvcc, by the host's compiler, or not at all
// (Python), in a folder of their own and within a time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/child.h"

namespace orrery {

// Thrown where Ctrl-C ended a program that ran for us.
struct KernelInterrupted {};

struct LimitedResult {
  ChildResult child;
  bool in_time = true;
};
// Runs a program to its end or for so many seconds.
LimitedResult run_limited(const std::vector<std::string>& words, std::string_view input,
                          double seconds);

struct KernelTools {
  bool host = false;     // no GPU: the host's compiler, shared memory in place of a device's
  std::string compiler;  // nvcc or a C++ compiler
  std::string architecture = "sm_90";
  std::string python = "python3";
};
// nvcc: as given, of CUDA_HOME, on the PATH, where NVIDIA installs it, or of PyPI's package. An
// Error says what to install.
KernelTools find_tools(bool host, const std::string& nvcc, const std::string& python);

// What ptxas says of a kernel that uses most registers.
struct KernelResources {
  int registers = 0, shared_bytes = 0, spilled_bytes = 0, kernels = 0;
  // Warps that the registers allow on a processor, of 64.
  int warps() const;
};
KernelResources resources_of(const std::string& ptxas);

struct BuiltKernel {
  bool compiled = false, script = false;
  std::filesystem::path program;  // a library, or the script
  std::string complaint;          // of the compiler: its first errors
  KernelResources resources;      // of CUDA
};
BuiltKernel build_kernel(const KernelTools& tools, const std::filesystem::path& file,
                         const std::filesystem::path& folder, double seconds);

// What keeps the interpreter from running a candidate, "no torch for python3: ..."; empty: nothing.
std::string missing_torch(const std::string& python);

// Judge and worker, in `folder`: built where those that lie there are of other sources.
struct JudgePrograms {
  std::filesystem::path judge, worker;
};
JudgePrograms build_judge(const KernelTools& tools, const std::filesystem::path& folder);

}  // namespace orrery
