// SPDX-License-Identifier: Apache-2.0
// Reads tables of training's own kernels: <gpu>_training_kernels.csv.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "sim/calibrate/log/operator_csv.h"

namespace orrery::table {

namespace {

// What a line's kernel is in our terms.
struct Meaning {
  const char* kernel;
  WorkKind kind;
  GemmRole role = GemmRole::forward;
  bool accumulate = false;
  Format format = Format::bf16;
};
constexpr Meaning meanings[] = {
    {"gemm-forward", WorkKind::gemm},
    {"gemm-input-gradient", WorkKind::gemm, GemmRole::input_gradient},
    {"gemm-weight-gradient", WorkKind::gemm, GemmRole::weight_gradient},
    {"gemm-weight-gradient-fp32", WorkKind::gemm, GemmRole::weight_gradient, true},
    {"gemm-misaligned", WorkKind::gemm},
    {"gemm-forward-fp8", WorkKind::gemm, GemmRole::forward, false, Format::fp8},
    {"gemm-forward-fp4", WorkKind::gemm, GemmRole::forward, false, Format::fp4},
    // Gradients are accumulated at full width (Transformer Engine's split accumulator).
    {"gemm-forward-fp8-slow-accumulate", WorkKind::gemm, GemmRole::input_gradient, false,
     Format::fp8},
    {"gemm-grouped", WorkKind::grouped_gemm},
    {"attention-forward", WorkKind::attention_forward},
    {"attention-backward", WorkKind::attention_backward},
    {"attention-forward-fp8", WorkKind::attention_forward, GemmRole::forward, false, Format::fp8},
    {"attention-backward-fp8", WorkKind::attention_backward, GemmRole::forward, false, Format::fp8},
    {"norm-forward", WorkKind::norm},
    {"norm-backward", WorkKind::norm},
    {"swiglu-forward", WorkKind::elementwise},
    {"swiglu-backward", WorkKind::elementwise},
    {"rotary", WorkKind::rotary},
    {"quantise-delayed", WorkKind::quantise},
    {"quantise-current", WorkKind::quantise},
    {"quantise-rows", WorkKind::quantise},
    {"permute", WorkKind::permute},
    {"embedding-forward", WorkKind::embedding},
    {"adamw-fp32", WorkKind::optimizer},
    {"adamw-bf16", WorkKind::optimizer},
    {"copy", WorkKind::copy},
    {"host-to-device", WorkKind::host_copy},
    {"device-to-host", WorkKind::host_copy},
};

// Of a table without a column `source`.
const std::string own_source = "orrery-training-kernels";

// Shorter streams time the host's launches, not the device.
constexpr double shortest_stream = 90e-6;

// False where the shape is not of three or four counts.
bool set_product(Work& work, const std::string& shape) {
  long long a = 0, b = 0, c = 0, d = 1;
  const int count = std::sscanf(shape.c_str(), "%lldx%lldx%lldx%lld", &a, &b, &c, &d);
  if (count < 3 || std::min({a, b, c, d}) < 1) return false;
  if (count == 4) {
    work.groups = a;
    a = b;
    b = c;
    c = d;
  }
  work.m = a;
  work.n = b;
  work.k = c;
  // dX[m, k] = dY[m, n] W[n, k]; dW[n, k] = dY^T[n, m] X[m, k].
  if (work.input != Format::bf16) return true;  // all roles were timed in the forward layout
  if (work.role == GemmRole::input_gradient) std::swap(work.n, work.k);
  if (work.role == GemmRole::weight_gradient) {
    work.m = b;
    work.n = c;
    work.k = a;
  }
  return true;
}

// False where the shape does not tell its six counts.
bool set_attention(Work& work, const std::string& shape) {
  long long batch = 0, length = 0, heads = 0, kv = 0, qk = 0, v = 0;
  const int count = std::sscanf(shape.c_str(), "b%llds%lldh%lldkv%lldd%lldv%lld", &batch, &length,
                                &heads, &kv, &qk, &v);
  if (count < 6 || std::min({batch, length, heads, kv, qk, v}) < 1) return false;
  work.batch = batch;
  work.q_length = work.kv_length = length;
  work.heads = heads;
  work.kv_heads = kv;
  work.qk_dim = qk;
  work.v_dim = v;
  work.causal = true;
  return true;
}

Library attention_or_named(const std::string& name) {
  return library_text.find(name).value_or(Library::eager);
}

OperatorTable& table_for(std::vector<OperatorTable>& tables, const OperatorTable& empty,
                         WorkKind kind, Format format, Library library, const std::string& source) {
  for (OperatorTable& t : tables)
    if (t.kind == kind && t.format == format && t.library == library) return t;
  OperatorTable fresh = empty;
  fresh.kind = kind;
  fresh.format = format;
  fresh.library = library;
  fresh.source = source;
  // Our first table has three roles of a few shapes; others have a grid of shapes.
  fresh.refine = is_product(kind) && source == own_source;
  tables.push_back(fresh);
  return tables.back();
}

}  // namespace

std::vector<OperatorTable> read_training_kernels(const Csv& csv, const OperatorTable& empty) {
  std::vector<OperatorTable> tables;
  for (std::size_t r = 0; r < csv.rows.size(); ++r) {
    const std::string& kernel = csv.text(r, "kernel");
    const auto* meaning = std::find_if(std::begin(meanings), std::end(meanings),
                                       [&](const Meaning& m) { return kernel == m.kernel; });
    if (meaning == std::end(meanings)) continue;
    const std::string shape = csv.text_or(r, "shape", "");
    const Format format = meaning->format;
    Work work{.kind = meaning->kind,
              .input = format,
              .output = Format::bf16,
              .role = meaning->role,
              .accumulate_fp32 = meaning->accumulate};
    const double seconds = csv.number(r, "ms") * 1e-3;
    if (is_product(work.kind)) {
      if (!set_product(work, shape)) csv.fail(r, "shape", "a shape as 8192x4096x4096");
    } else if (is_attention(work.kind)) {
      if (!set_attention(work, shape)) csv.fail(r, "shape", "a shape as b1s8192h32kv8d128v128");
    } else {
      if (seconds < shortest_stream) continue;
      work.bytes_read = csv.number(r, "bytes");
    }
    const Library library = attention_or_named(csv.text_or(r, "library", ""));
    OperatorRow row{
        .kernels = {},
        .count = 1,
        .measured = Seconds(seconds),
        .replays = static_cast<int>(csv.integer_or(r, "replays", 0)),
        .family = hash({work.n, work.k, work.heads, work.kv_heads, work.q_length, work.qk_dim}),
        .shape = kernel + " " + shape};
    row.kernels[0] = {.work = work, .library = library};
    table_for(tables, empty, work.kind, format, library, csv.text_or(r, "source", own_source))
        .rows.push_back(row);
  }
  return tables;
}

}  // namespace orrery::table
