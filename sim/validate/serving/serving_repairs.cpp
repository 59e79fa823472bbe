// SPDX-License-Identifier: Apache-2.0
// Repairs sizes that tables multiplied with themselves, spread wrongly or left out.
#include "sim/validate/serving/serving_repairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/text/lower_case.h"

namespace orrery {
namespace {

// A1: TPn + EPn on n accelerators, written tp = n x n, moe n x n. A2: the same with attention DP n
// in place of TPn. `squared` is the size that was multiplied, `other` the one that must be 1.
bool repair_squared(ToldWorkers& w, ServingCase& c, std::int64_t ToldWorkers::*squared,
                    std::int64_t ToldWorkers::*other, std::string_view written,
                    std::string_view meant) {
  const std::int64_t n = w.moe_tp;
  if (n <= 1 || n != w.moe_ep || w.*other != 1 || w.*squared != n * n) return false;
  w.*squared = w.moe_ep = n;
  w.moe_tp = 1;
  c.cells.squared = true;
  c.row.assumed.push_back(
      fmt::format("{0} {1} written for {2}{3} with EP{3}", written, n * n, meant, n));
  return true;
}

// A3: TPn + EPn without attention DP, written attention_dp n, moe_ep n x n.
bool repair_squared_ep(ToldWorkers& w, ServingCase& c) {
  const std::int64_t n = w.tp;
  if (n <= 1 || w.attention_dp != n || w.moe_tp != 1 || w.moe_ep != n * n) return false;
  w.moe_ep = n;
  w.attention_dp = 1;
  c.cells.squared = true;
  c.row.assumed.push_back(fmt::format("EP {0} written for TP{1} with EP{1}", n * n, n));
  return true;
}

// A4: experts over more ranks than attention: attention is repeated.
bool imply_attention_dp(ToldWorkers& w, ServingCase& c) {
  constexpr std::int64_t host = 8;
  const std::int64_t experts = w.moe_tp * w.moe_ep, attention = w.tp * w.attention_dp;
  if (attention == 0 || experts <= attention || experts % attention != 0 || experts > host)
    return false;
  w.attention_dp = experts / w.tp;
  c.row.assumed.push_back(
      fmt::format("attention DP {}, as experts are spread over {}", w.attention_dp, experts));
  return true;
}

}  // namespace

void repair_aggregated(ServingCase& c) {
  ToldWorkers& w = c.engine;
  using Workers = ToldWorkers;
  if (!repair_squared(w, c, &Workers::tp, &Workers::attention_dp, "tp", "TP") &&
      !repair_squared(w, c, &Workers::attention_dp, &Workers::tp, "attention DP", "DP") &&
      !repair_squared_ep(w, c))
    imply_attention_dp(w, c);
}

void repair_expert_groups(ToldWorkers& w, ServingCase& c) {
  if (!c.expert_groups_as_tp || w.attention_dp <= 1 || w.moe_tp != w.attention_dp || w.moe_ep != 1)
    return;
  w.moe_ep = w.moe_tp;
  w.moe_tp = 1;
  c.row.assumed.push_back(fmt::format("EP {} where the table has TP for experts", w.moe_ep));
}

ToldWorkers aggregated_workers(const DashboardWorkers& told) {
  const std::int64_t ep = std::max<std::int64_t>(1, told.ep);
  ToldWorkers w{.count = 1, .tp = told.tp, .moe_tp = told.tp / ep, .moe_ep = ep};
  if (told.attention_dp) {
    w.attention_dp = told.tp;
    w.tp = 1;
  }
  return w;
}

ToldWorkers worker_shares(const DashboardWorkers& told, bool expert_groups_as_tp) {
  ToldWorkers w{.count = told.workers};
  if (told.workers == 0) return w;
  const std::int64_t size = told.gpus / told.workers;
  w.attention_dp = told.attention_dp ? size : 1;
  w.tp = told.attention_dp ? 1 : size;
  w.moe_ep = told.ep > 1 ? told.ep : told.attention_dp && expert_groups_as_tp ? size : 1;
  w.moe_tp = size / w.moe_ep;
  return w;
}

std::string repaired_precision(const std::string& told, ServingCase& c) {
  if (!told.empty()) return lower_case(told);
  c.row.assumed.emplace_back("precision blank: the checkpoint's bf16");
  return "bf16";
}

double tokens_of_all(double printed, double decode_gpus, double all_gpus) {
  return printed * decode_gpus / all_gpus;
}

}  // namespace orrery
