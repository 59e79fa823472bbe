// Knows the operator tables of NVIDIA's aiconfigurator: which kernels one measured row ran.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/base/work.h"

namespace orrery {

// One measured row: the kernels that ran one after the other, and how long they took together.
struct OperatorRow {
  std::array<Kernel, 4> kernels;
  int count = 0;
  Seconds measured;
  std::uint64_t family = 0;  // hash of what does not grow with the batch: (n, k) or the heads
  std::string shape;         // text for people: "4096x8192x8192"
};

// One table: a file of rows of one operator, number format and framework.
struct OperatorTable {
  std::string device;   // catalogue name: "h200-sxm"
  WorkKind kind = WorkKind::gemm;      // what its fit is for
  Format format = Format::bf16;
  Library library = Library::cublas;
  std::string note;     // rows that were left out and why
  bool host_bound = false;  // short rows timed the host: start-up and streaming cannot be fitted
  std::vector<OperatorRow> rows;
};

// Reads a table by path. The name says what it holds: <gpu>_<operator>_<framework>[_<format>].csv
// with operator gemm, attn_prefill, attn_decode, moe, mla_prefill or mla_decode; a file may end in
// "_subset". Lines that start with '#' are skipped. Error for other names, missing columns and
// numbers that do not parse. Tables of MLA hold two formats: the one asked for is read, bf16 or
// fp8. MoE rows are kept with all experts on the rank (moe_ep_size 1).
OperatorTable read_operator_table(const std::filesystem::path& file, Format mla_format);

// Whether the row is kept out of the fit: 30% of the families, by hash.
bool is_held_out(const OperatorRow& row);

}  // namespace orrery
