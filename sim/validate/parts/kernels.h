// SPDX-License-Identifier: Apache-2.0
// Knows how single kernels, calls and launches that were measured are held against predictions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/json/tree.h"

namespace orrery {

// One measured kernel (or collective, or launch) with its prediction.
struct ScoredKernel {
  std::string device, source;          // catalogue name; id of who measured it
  std::string kind, format, library;   // "gemm", "bf16", "cublas"; collectives: "of 4" for format
  std::string shape, mode;             // mode: "burst" or "sustained"
  bool held_out = false;               // of every fit
  double measured = 0, predicted = 0;  // seconds
  double error() const { return predicted / measured - 1; }
};

// Rows of one kind, format and library of one device that one source measured.
struct KernelGroup {
  std::string device, source, kind, format, library, mode;
  std::vector<const ScoredKernel*> rows;
};

// What an error on held-out rows may be at most, and of which rows it is judged.
struct KernelBar {
  const char* name;        // of the class: "products", "attention", "memory-bound", ...
  double median, p90;      // p90 0: none is asked for
  double shortest_judged;  // seconds; 0: rows of any length
};
// By the kind of a row: products 4% and 12% from 20 us on; attention and memory-bound kernels 6%
// and 15%; collectives 8% and 20%; launches 10%.
const KernelBar& bar_of(const std::string& kind);

// Whether a file is one: lines of the microbenchmarks (*.jsonl or a folder of them), or an operator
// table by its name.
bool is_kernel_file(const std::filesystem::path& file);

// Our own measurements of every device that has some, and the shipped operator tables.
std::vector<std::filesystem::path> shipped_kernel_files();

// Predicts every sample and row with the calibration of its device. Errors: those of the readers,
// and files in which nothing can be predicted.
std::vector<ScoredKernel> score_kernels(const std::vector<std::filesystem::path>& files);

// By device and source, then by class of kernels, then in the order in which they first appear.
std::vector<KernelGroup> group_kernels(const std::vector<ScoredKernel>& rows);

// For each device and source a table of held-out errors by kind and format, against what they may
// be. `each_row`: a line for every row, fitted ones too. `detailed`: a second table by library and
// by how long a kernel takes.
std::string kernels_text(const std::vector<ScoredKernel>& rows, bool each_row, bool detailed);

// Appends to the lists "rows" and "groups" of DESIGN section 7.
void add_kernels_json(const std::vector<ScoredKernel>& rows, Json& row_list, Json& group_list);

}  // namespace orrery
