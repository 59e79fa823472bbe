// SPDX-License-Identifier: Apache-2.0
// Counts the operations and bytes of requests, and compares them with peaks.
#include "sim/validate/serving/peak_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/statistics.h"

namespace orrery {
namespace {

// Parameters that products read: without embedding and norms.
struct Weights {
  double attention = 0, dense = 0, experts = 0, active_experts = 0, head = 0;
  double pool = 0, topk = 0;  // experts of a layer, and those of a token
  double per_position = 0;    // operations of attention for each key that a token sees
  double active() const { return attention + dense + active_experts + head; }
};

Weights weights_of(const Model& model) {
  Weights w;
  for (std::int64_t i = 0; i < model.layer_count(); ++i) {
    const LayerClass& layer = model.layer(i);
    const LayerParameters p = layer_parameters(model, layer);
    w.attention += static_cast<double>(p.mixer);
    w.dense += static_cast<double>(p.ffn);
    w.experts += static_cast<double>(p.experts);
    w.active_experts += static_cast<double>(p.active_experts);
    w.pool = std::max(w.pool, static_cast<double>(layer.ffn.experts));
    w.topk = std::max(w.topk, static_cast<double>(layer.ffn.topk));
    // Few keys of a long history are attended to where an indexer chooses them: at least none.
    if (is_served_only(layer.mixer)) continue;
    if (layer.mixer.kind == MixerKind::attention || layer.mixer.kind == MixerKind::mla)
      w.per_position +=
          2 * static_cast<double>(layer.mixer.heads * (layer.mixer.qk_dim + layer.mixer.v_dim));
  }
  w.head = static_cast<double>(model.hidden) * static_cast<double>(model.vocab);
  return w;
}

double request_operations(const Weights& w, double prompt, double output) {
  return 2 * (w.active() - w.head) * prompt + 2 * w.active() * output +
         w.per_position * (prompt / 2 * prompt + (prompt + output / 2) * output);
}

bool is_fp4(const ServingCase& c) { return c.row.precision.find("fp4") != std::string::npos; }
bool is_fp8(const ServingCase& c) { return c.row.precision == "fp8"; }
bool is_int4(const ServingCase& c) { return c.row.precision == "int4"; }

// Dense peak of one accelerator in the row's format, or in the next wider one that it has; 0: none.
double peak_of(const ServingCase& c) {
  std::vector<Format> formats = {Format::bf16, Format::fp16};
  if (is_fp4(c) || is_fp8(c)) formats.insert(formats.begin(), Format::fp8);
  if (is_fp4(c)) formats.insert(formats.begin(), Format::fp4);
  for (const Format f : formats) {
    const double rate = c.device->tensor_rate[static_cast<std::size_t>(f)].si();
    if (rate > 0) return rate;
  }
  return 0;
}

// Bytes that one step of `tokens` reads at least, on one accelerator.
double least_bytes(const ServingCase& c, const Weights& w, double tokens) {
  constexpr double sixteen_bits = 2, fp8 = 1 + 1.0 / 8192, four_bits = 0.5625;
  const double experts = is_fp4(c) || is_int4(c) ? four_bits : is_fp8(c) ? fp8 : sixteen_bits;
  // Four-bit checkpoints of models with experts keep their attention and head in 16 bits.
  const bool kept = experts == four_bits && w.pool > 0;
  const double attention = kept ? sixteen_bits : experts;
  const double share = w.pool > 0 ? 1 - std::pow(1 - w.topk / w.pool, tokens) : 0;
  const auto tp = static_cast<double>(std::max<std::int64_t>(1, c.engine.tp));
  const auto ranks = static_cast<double>(std::max<std::int64_t>(1, c.engine.ranks()));
  return (w.attention * attention + w.dense * experts + w.head * sixteen_bits) / tp +
         w.experts * experts * share / ranks;
}

bool comparable(const ServingCase& c) {
  return c.live() && c.model && c.device && c.row.load.concurrency && c.row.measured.ttft &&
         c.row.measured.tpot && !c.of(ServingTable::batches) && !c.of(ServingTable::stages) &&
         c.gpus() > 0 && peak_of(c) > 0;
}

// Share of the FLOP/s peak that the row's request rate takes.
double peak_share(const ServingCase& c, const Weights& w) {
  const double share = c.row.load.mean_share();
  const double prompt = c.row.load.prompt_tokens * share, output = c.row.load.output_tokens * share;
  const double rate =
      c.concurrency() / (*c.row.measured.ttft + (output - 1) * *c.row.measured.tpot);
  return rate * request_operations(w, prompt, output) /
         (static_cast<double>(c.gpus()) * peak_of(c));
}

void judge_campaign(const std::vector<ServingCase*>& rows,
                    const std::map<const ServingCase*, double>& over) {
  const auto is_over = [&over](const ServingCase* c) { return over.contains(c); };
  const auto count = static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), is_over));
  for (ServingCase* c : rows) {
    if (is_over(c)) {
      leave_out(*c, "R9b",
                fmt::format("{:.0f}% of the FLOP/s peak while decoding: cached prompts or a rate "
                            "limit, which the table does not tell",
                            over.at(c) * 100));
    } else if (count > 0 && count * 3 >= rows.size()) {
      leave_out(*c, "R9b",
                fmt::format("{} of the {} rows of this campaign imply over 45% of the FLOP/s peak "
                            "while decoding: cached prompts or a rate limit",
                            count, rows.size()));
    }
  }
}

std::string source_key(const ServingCase& c) {
  return fmt::format("{}, {}, {}, {}", c.row.file, c.row.source, c.row.family, c.row.gpu);
}

bool analysed_run(const ServingCase& c) {
  return comparable(c) && c.analysed && !c.row.disaggregated;
}

// Prefill of one prompt at half the peak.
double prompt_seconds(const ServingCase& c) {
  return 2 * weights_of(*c.model).active() * c.row.load.prompt_tokens /
         (static_cast<double>(c.gpus()) * peak_of(c) * 0.5);
}

// How much of the growth of concurrency TTFT follows, for each pair of lengths.
std::vector<double> growths(const std::vector<ServingCase*>& rows, double from) {
  std::map<std::string, std::vector<const ServingCase*>> by_lengths;
  for (const ServingCase* c : rows) by_lengths[lengths_key(*c)].push_back(c);
  std::vector<double> all;
  for (auto& [key, runs] : by_lengths) {
    std::stable_sort(runs.begin(), runs.end(), [](const ServingCase* a, const ServingCase* b) {
      return a->concurrency() < b->concurrency();
    });
    const ServingCase *first = runs.front(), *last = runs.back();
    if (runs.size() < 2 || last->concurrency() < from) continue;
    all.push_back(*last->row.measured.ttft / *first->row.measured.ttft /
                  (last->concurrency() / first->concurrency()));
  }
  return all;
}

bool one_wave(const std::vector<ServingCase*>& rows) {
  constexpr double from = 64, of_all = 0.35, most_rows = 0.8, growth = 0.5;
  double high = 0, waves = 0;
  for (const ServingCase* c : rows) {
    if (c->concurrency() < from) continue;
    ++high;
    if (*c->row.measured.ttft > of_all * c->concurrency() * prompt_seconds(*c)) ++waves;
  }
  if (high == 0 || waves / high <= most_rows) return false;
  const std::vector<double> all = growths(rows, from);
  return !all.empty() && median(all) > growth;
}

bool waits_for_slots(const std::vector<ServingCase*>& rows) {
  const auto waits = [](const ServingCase* c) {
    const double ttft = *c->row.measured.ttft;
    return ttft > c->concurrency() * prompt_seconds(*c) &&
           ttft > *c->row.measured.tpot * c->row.load.output_tokens;
  };
  return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), waits)) * 2 > rows.size();
}

double median_tpot(const std::vector<ServingCase*>& rows, std::size_t from, std::size_t to) {
  std::vector<double> tpot;
  for (std::size_t i = from; i < to; ++i) tpot.push_back(*rows[i]->row.measured.tpot);
  return median(tpot);
}

bool flat_and_slow(std::vector<ServingCase*> rows) {
  constexpr std::size_t least_rows = 4;
  constexpr double load_spread = 2.2, flat = 1.1, slow = 3;
  if (rows.size() < least_rows) return false;
  std::stable_sort(rows.begin(), rows.end(), [](const ServingCase* a, const ServingCase* b) {
    return a->concurrency() < b->concurrency();
  });
  if (rows.back()->concurrency() / rows.front()->concurrency() < load_spread) return false;
  const std::size_t part = std::max<std::size_t>(2, rows.size() / 4);
  const double low = median_tpot(rows, 0, part);
  const double high = median_tpot(rows, rows.size() - part, rows.size());
  const ServingCase& first = *rows.front();
  const double seconds = least_bytes(first, weights_of(*first.model), first.concurrency()) /
                         first.device->memory_bandwidth.si();
  return high / low<flat&& * first.row.measured.tpot> slow * seconds;
}

}  // namespace

void drop_beyond_peaks(ServingCases& cases) {
  constexpr double most = 0.45, most_bf16 = 0.55;
  std::map<const Model*, Weights> weights;
  std::map<const ServingCase*, double> over;
  for (ServingCase& c : cases) {
    if (!comparable(c)) continue;
    auto known = weights.find(c.model);
    if (known == weights.end()) known = weights.emplace(c.model, weights_of(*c.model)).first;
    const double share = peak_share(c, known->second);
    if (share > 1)
      leave_out(c, "R9",
                fmt::format("it would need {:.2f} times the FLOP/s peak of its GPUs", share));
    else if (share > (c.row.precision == "bf16" ? most_bf16 : most))
      over[&c] = share;
    const double guessed = c.row.software.speculation == ServingSpeculation::mtp ? 4 : 1;
    const double seconds =
        least_bytes(c, known->second, 1) / c.device->memory_bandwidth.si() / guessed;
    if (seconds > *c.row.measured.tpot)
      leave_out(c, "R9c",
                fmt::format("a step would read its weights {:.2f} times faster than the HBM peak",
                            seconds / *c.row.measured.tpot));
  }
  const CaseGroups campaigns = group_cases(
      cases, [](const ServingCase& c) { return c.live() && c.inferencex_run(); }, source_key);
  for (const auto& [key, rows] : campaigns) judge_campaign(rows, over);
}

void drop_waves_of_prompts(ServingCases& cases) {
  const CaseGroups campaigns = group_cases(cases, analysed_run, [](const ServingCase& c) {
    return fmt::format("{}, {}, {}", c.row.file, c.row.source, c.gpus());
  });
  for (const auto& [key, rows] : campaigns) {
    const bool wave = one_wave(rows), waits = waits_for_slots(rows);
    for (ServingCase* c : rows) {
      if (wave)
        leave_out(*c, "R10",
                  "TTFT is about half of the prefills of all prompts in flight and grows with "
                  "their number: one wave of prompts, no steady state");
      if (waits)
        leave_out(*c, "R10b",
                  "requests wait longer than they run and longer than all prefills take: fewer "
                  "run at once than the concurrency, and the limit is not told");
    }
  }
}

void drop_without_graphs(ServingCases& cases) {
  const CaseGroups deployments = group_cases(cases, analysed_run, [](const ServingCase& c) {
    return fmt::format("{}, {}, {}, {}", c.row.file, c.row.source, c.row.gpu, layout_key(c));
  });
  for (const auto& [key, rows] : deployments) {
    if (!flat_and_slow(rows)) continue;
    const ServingRow first = rows.front()->row;
    for (ServingCase& c : cases)
      if (c.row.file == first.file && c.row.source == first.source)
        leave_out(c, "R12",
                  "TPOT does not change with the batch and is over 3 times what its bytes take: "
                  "run without CUDA graphs, which the table does not tell");
  }
}

}  // namespace orrery
