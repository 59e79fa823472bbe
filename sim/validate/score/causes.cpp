// SPDX-License-Identifier: Apache-2.0
// Ranks rows by error and derives suspected causes from the residuals of their likes.
#include "sim/validate/score/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/sorting.h"
#include "sim/base/statistics.h"
#include "sim/base/text/words.h"
#include "sim/paper/tables.h"

namespace orrery {
namespace {

// The error on a scale on which half and double are alike.
double log_error(const ScoredRow& s) { return std::log1p(std::max(-0.99, *s.speed_error)); }

std::vector<const ScoredRow*> scored(const std::vector<ScoredRow>& rows) {
  std::vector<const ScoredRow*> kept;
  for (const ScoredRow& s : rows)
    if (is_scored(s)) kept.push_back(&s);
  return kept;
}

// What a row shares with others: "release nemo@26.06", alone and with one more of them.
std::vector<std::string> traits(const PreparedRow& r) {
  const std::string experts = r.model.has_experts() ? "with experts" : "of dense models";
  const std::string precision = std::string(to_text(r.layout.precision));
  std::vector<std::string> all = {fmt::format("release {} {}", r.release, experts),
                                  fmt::format("release {} on {}", r.release, r.gpu),
                                  fmt::format("release {}", r.release),
                                  fmt::format("model {} on {}", r.model.name, r.gpu),
                                  fmt::format("model {}", r.model.name),
                                  fmt::format("{} in {} {}", r.gpu, precision, experts),
                                  fmt::format("{} {}", r.gpu, experts),
                                  fmt::format("cluster {}", r.cluster->cluster.name),
                                  fmt::format("source \"{}\" in {}", r.source, precision),
                                  fmt::format("source \"{}\"", r.source)};
  if (r.job.task != Task::pretrain) all.push_back(fmt::format("task {}", to_text(r.job.task)));
  if (r.layout.tp > 1)
    all.push_back(fmt::format("source \"{}\" with TP {}", r.source, r.layout.tp));
  if (r.layout.pp > 1)
    all.push_back(fmt::format("source \"{}\" with PP {}", r.source, r.layout.pp));
  if (r.layout.micro_batch > 0)
    all.push_back(fmt::format("source \"{}\" with microbatch {}", r.source, r.layout.micro_batch));
  if (r.layout.recompute != Recompute::none)
    all.push_back(fmt::format("source \"{}\" with recompute", r.source));
  return all;
}

using Likes = std::map<std::string, std::vector<const ScoredRow*>>;

struct Shared {
  std::string trait;
  double bias = 0;      // median log error of the others
  double explains = 0;  // how much of their spread the trait takes away, and of this row's error
  std::size_t rows = 0;
};

// The trait whose other rows are off most like this one: their median error is of the same sign and
// at least a third of this row's, and most of them agree.
std::optional<Shared> best_shared(const ScoredRow& s, const Likes& likes) {
  constexpr std::size_t fewest = 3;
  constexpr double least_part = 1.0 / 3, agreeing = 0.75;
  const double own = log_error(s);
  std::optional<Shared> best;
  for (const std::string& trait : traits(*s.row)) {
    std::vector<double> others;
    for (const ScoredRow* o : likes.at(trait))
      if (o != &s) others.push_back(log_error(*o));
    if (others.size() < fewest) continue;
    const double bias = median(others);
    const auto same = std::count_if(others.begin(), others.end(),
                                    [own](double e) { return (e > 0) == (own > 0); });
    if (bias / own < least_part ||
        static_cast<double>(same) < agreeing * static_cast<double>(others.size()))
      continue;
    // What remains of the errors once the shared part is taken away.
    double before = own * own, after = (own - bias) * (own - bias);
    for (const double e : others) {
      before += e * e;
      after += (e - bias) * (e - bias);
    }
    const double explains = 1 - after / before;
    if (!best || explains > best->explains)
      best = Shared{.trait = trait, .bias = bias, .explains = explains, .rows = others.size()};
  }
  return best;
}

double share_of(const StageBreakdown& stage, Label label) {
  double all = 0;
  for (int i = 0; i < label_count; ++i) all += static_cast<double>(stage[static_cast<Label>(i)].ps);
  return all > 0 ? static_cast<double>(stage[label].ps) / all : 0;
}

// The part of the step whose share goes with the error among rows of the same source.
std::string going_with(const ScoredRow& s, const std::vector<const ScoredRow*>& of_source) {
  constexpr std::size_t fewest = 8;
  constexpr double strong = 0.6, least_share = 0.03;
  if (of_source.size() < fewest) return "";
  std::vector<double> errors;
  for (const ScoredRow* o : of_source) errors.push_back(log_error(*o));
  Label best = Label::gemm;
  double correlation = 0;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    if (share_of(s.prediction.stage, label) < least_share) continue;
    std::vector<double> shares;
    for (const ScoredRow* o : of_source) shares.push_back(share_of(o->prediction.stage, label));
    const double r = rank_correlation(shares, errors);
    if (std::abs(r) > std::abs(correlation) && (r > 0) == (log_error(s) > 0)) {
      correlation = r;
      best = label;
    }
  }
  if (std::abs(correlation) < strong) return "";
  return fmt::format(
      "Rows of its source are {} the more of their step is {} (rank correlation {:.2f}).",
      correlation > 0 ? "too fast" : "too slow", to_text(best), correlation);
}

// By how much the largest parts would have to change to explain the row alone.
std::string would_have_to(const ScoredRow& s) {
  const double factor = std::exp(log_error(s));  // measured step over the predicted one
  Label largest = Label::gemm;
  for (int i = 0; i < label_count; ++i)
    if (s.prediction.stage[static_cast<Label>(i)].ps > s.prediction.stage[largest].ps)
      largest = static_cast<Label>(i);
  const double share = share_of(s.prediction.stage, largest);
  const double change = 1 + (factor - 1) / share;
  if (change <= 0)
    return fmt::format(
        "No part alone explains it: without its {} the step would still be too long.",
        to_text(largest));
  return fmt::format("Alone, {} would have to take {:.2g} times as long.", to_text(largest),
                     change);
}

std::string cause_of(const ScoredRow& s, const Likes& likes) {
  std::vector<std::string> sentences;
  if (!s.row->remark.empty()) sentences.push_back("Known of it: " + s.row->remark + ".");
  const auto shared = best_shared(s, likes);
  if (shared)
    sentences.push_back(fmt::format("Shared with {}: its {} other rows are {}.", shared->trait,
                                    shared->rows, signed_percent(std::expm1(shared->bias), 0)));
  const auto of_source = likes.find(fmt::format("source \"{}\"", s.row->source));
  if (const std::string with = going_with(s, of_source->second); !with.empty())
    sentences.push_back(with);
  if (!shared)
    sentences.push_back(s.row->assumed.empty() ? "Its likes are not off this way."
                                               : "Its likes are not off this way; assumed of it: " +
                                                     joined(s.row->assumed, ", ") + ".");
  sentences.push_back(would_have_to(s));
  return joined(sentences, " ");
}

}  // namespace

std::string shares_text(const StageBreakdown& stage, int count) {
  std::array<std::pair<double, Label>, label_count> parts;
  for (int i = 0; i < label_count; ++i) {
    const auto label = static_cast<Label>(i);
    parts[static_cast<std::size_t>(i)] = {-share_of(stage, label), label};
  }
  std::sort(parts.begin(), parts.end());
  std::string out;
  for (int i = 0; i < count; ++i) {
    const auto& [share, label] = parts[static_cast<std::size_t>(i)];
    constexpr double least = 0.005;
    if (-share < least) break;
    out += fmt::format("{}{} {:.0f}%", out.empty() ? "" : ", ", to_text(label), -100 * share);
  }
  return out;
}

std::vector<WorstRow> worst_rows(const std::vector<ScoredRow>& rows, std::size_t count,
                                 std::size_t of_source) {
  std::vector<const ScoredRow*> sorted = scored(rows);
  Likes likes;
  for (const ScoredRow* s : sorted)
    for (const std::string& trait : traits(*s->row)) likes[trait].push_back(s);
  sort_stably(sorted, [](const ScoredRow* a, const ScoredRow* b) {
    return std::abs(log_error(*a)) > std::abs(log_error(*b));
  });
  std::map<std::string, std::size_t> taken;
  std::vector<WorstRow> worst;
  for (const ScoredRow* s : sorted) {
    if (worst.size() >= count) break;
    if (!s->row->outside.empty()) continue;  // known and said elsewhere
    if (taken[s->row->source]++ >= of_source) continue;
    constexpr int parts = 6;
    worst.push_back({.row = s,
                     .breakdown = shares_text(s->prediction.stage, parts),
                     .cause = cause_of(*s, likes)});
  }
  return worst;
}

std::string worst_text(const std::vector<WorstRow>& rows) {
  std::string out = "\nFarthest off, with where their step goes and what may be behind it\n";
  for (const WorstRow& w : rows) {
    const PreparedRow& r = *w.row->row;
    out += wrap(fmt::format("{} {:+.0f}%  {}, {}, {}, {}", r.id, 100 * *w.row->speed_error, r.gpu,
                            r.model.name, r.release, to_text(r.layout)),
                page_width, "  ", "      ");
    out += wrap(w.breakdown, page_width, "      ", "      ");
    out += wrap(w.cause, page_width, "      ", "      ");
  }
  return out;
}

}  // namespace orrery
