// SPDX-License-Identifier: Apache-2.0
// Holds tables of measured operators, ours and others': which kernels one measured row ran.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/units/units.h"
#include "sim/base/work.h"

namespace orrery {

// One measured row: the kernels that ran one after the other, and how long they took together.
struct OperatorRow {
  std::array<Kernel, 5> kernels;
  int count = 0;
  Seconds measured;
  int replays = 0;           // how often it ran without a pause; 0: too short for the power limit
  std::uint64_t family = 0;  // hash of what does not grow with the batch: (n, k) or the heads
  std::string shape;         // text for people: "4096x8192x8192"
  bool cold = false;         // its operands came from memory: nothing was left in L2
  double cached = 0;         // share of them that was in L2 from the replay before, where known
  std::string variant;       // which kernel of its kind it was; empty where none is named
  int run = 0;               // rows of one run of one program have the same
};

// One table: rows of one operator, number format and library (or serving framework).
struct OperatorTable {
  std::string device;              // catalogue name: "h200-sxm"
  WorkKind kind = WorkKind::gemm;  // what its fit is for
  Format format = Format::bf16;
  Library library = Library::cublas;
  double stored_bits = 0;  // of products' weights, where they are unpacked; 0: as the format
  std::string variant;     // the one kernel that it is of; empty: any of its kind
  std::string note;        // rows that were left out and why
  std::string source = "aiconfigurator-operators";  // id of where it comes from
  bool refine = false;      // starts from the fitted curve and adjusts it to training's kernels
  bool host_bound = false;  // short rows timed the host: start-up and streaming cannot be fitted
  bool twin = false;        // the library runs it with its bf16 kernels, in this format
  bool converts = false;    // rows time the conversion of the operands as well
  std::vector<OperatorRow> rows;
};

// Reads the tables of a file. The name says what it holds:
// <gpu>_<operator>_<framework>[_<format>].csv with operator gemm, attn_prefill, attn_decode, moe,
// mla_prefill, mla_decode or mla_bmm (aiconfigurator), or <gpu>_training_kernels.csv; a name may
// end in "_subset". Lines that start with '#' are skipped. Tables of MLA hold two formats and give
// two tables, training kernels one for each kernel and library. MoE rows are kept with all experts
// on the rank (moe_ep_size 1). Error for other names, missing columns and cells that are no
// numbers.
std::vector<OperatorTable> read_operator_tables(const std::filesystem::path& file);

// Leaves out decode whose cache stayed in L2 from one replay to the next, as a model's never does:
// kernels of more than a microsecond's traffic and less than l2_for_replays of the L2. Says so in
// the table's note. `capacity` of the L2, `bandwidth` of HBM.
void drop_cached(OperatorTable& table, Bytes capacity, BytesPerSecond bandwidth);

// Whether the library's expert layers go through lists of all experts of a rank, so that those
// without rows cost time as well: TensorRT-LLM's.
bool goes_through_lists(Library library);

// Whether the row is kept out of the fit: 30% of the families, by hash.
bool is_held_out(const OperatorRow& row);

}  // namespace orrery
