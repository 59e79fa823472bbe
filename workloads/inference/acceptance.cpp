// SPDX-License-Identifier: Apache-2.0
// Reads acceptance of guessed tokens, and makes curves of survival of it.
#include "workloads/inference/acceptance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "sim/base/errors/check.h"
#include "sim/base/json/json.h"

namespace orrery {
namespace {

constexpr const char* form = "chances from 0 to 1 like 0.8, or by position 0.9:0.8:0.6";

bool measures(const MeasuredAcceptance& one, DraftKind kind, std::int64_t drafts) {
  return one.kind == kind && static_cast<std::int64_t>(one.tokens.size()) >= drafts;
}

// Of the model itself, else of its family; nullptr: of neither with this label.
const MeasuredAcceptance* of_model(const std::vector<MeasuredAcceptance>& all, const Model& model,
                                   DraftKind kind, std::int64_t drafts, std::string_view label) {
  const MeasuredAcceptance* family = nullptr;
  for (const MeasuredAcceptance& one : all) {
    if (one.label != label || !measures(one, kind, drafts)) continue;
    if (one.model == model.name) return &one;
    if (family == nullptr && one.family == model.family) family = &one;
  }
  return family;
}

// A model of which both the usual text and the one of the label were measured.
std::optional<std::pair<const MeasuredAcceptance*, const MeasuredAcceptance*>> of_both_texts(
    const std::vector<MeasuredAcceptance>& all, DraftKind kind, std::int64_t drafts,
    std::string_view label) {
  for (const MeasuredAcceptance& asked : all) {
    if (label.empty() || asked.label != label || !measures(asked, kind, drafts)) continue;
    for (const MeasuredAcceptance& usual : all)
      if (usual.label.empty() && usual.model == asked.model && measures(usual, kind, drafts))
        return std::pair(&usual, &asked);
  }
  return std::nullopt;
}

}  // namespace

double Acceptance::tokens() const {
  double sum = 1;
  for (const double s : survival) sum += s;
  return sum;
}

std::vector<MeasuredAcceptance> load_acceptance(const std::filesystem::path& path) {
  const JsonValue file = JsonValue::load(path);
  file.expect_only({"measured"});
  std::vector<MeasuredAcceptance> all;
  for (const JsonValue& entry : file.at("measured").items()) {
    entry.expect_only(
        {"model", "family", "method", "label", "tokens", "text", "evidence", "source"});
    const auto kind = draft_kind_text.find(entry.at("method").text());
    if (!kind) entry.at("method").fail("mtp, eagle3, draft or ngram");
    MeasuredAcceptance one{.model = entry.at("model").text(),
                           .family = entry.at("family").text(),
                           .kind = *kind,
                           .tokens = {},
                           .label = {},
                           .text = entry.at("text").text(),
                           .source = entry.at("source").text()};
    entry.at("evidence").one_of({"measured"});
    if (const auto label = entry.find("label")) one.label = label->text();
    for (const JsonValue& tokens : entry.at("tokens").items()) {
      const double most = static_cast<double>(one.tokens.size()) + 2;
      if (tokens.number() < 1 || tokens.number() > most)
        tokens.fail(fmt::format("from 1 to {} tokens a step", most));
      one.tokens.push_back(tokens.number());
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::optional<Acceptance> measured_acceptance(const std::vector<MeasuredAcceptance>& all,
                                              const Model& model, DraftKind kind,
                                              std::int64_t drafts, std::string_view label) {
  const MeasuredAcceptance* one = of_model(all, model, kind, drafts, label);
  if (one != nullptr)
    return Acceptance{.survival = survival_of(one->tokens, drafts),
                      .from = fmt::format("measured for {} on {}", one->model, one->text)};
  const MeasuredAcceptance* own = of_model(all, model, kind, drafts, "");
  const auto other = of_both_texts(all, kind, drafts, label);
  if (own == nullptr || !other) return std::nullopt;
  Acceptance moved{
      .survival = survival_of(own->tokens, drafts),
      .from = fmt::format("measured for {} on {}, and changed as "
                          "those of {} are on {}",
                          own->model, own->text, other->second->model, other->second->text)};
  const std::vector<double> usual = survival_of(other->first->tokens, drafts);
  const std::vector<double> asked = survival_of(other->second->tokens, drafts);
  double before = 1;
  for (std::size_t i = 0; i < moved.survival.size(); ++i) {
    const double ratio = usual[i] > 0 ? asked[i] / usual[i] : 1;
    before = moved.survival[i] = std::min(before, moved.survival[i] * ratio);
  }
  return moved;
}

std::vector<std::string> acceptance_labels(const std::vector<MeasuredAcceptance>& all,
                                           const Model& model, DraftKind kind,
                                           std::int64_t drafts) {
  std::set<std::string> labels;
  for (const MeasuredAcceptance& one : all)
    if (!one.label.empty() && measured_acceptance(all, model, kind, drafts, one.label))
      labels.insert(one.label);
  return {labels.begin(), labels.end()};
}

// Neighbours that violate the order, or that would be below nothing, are pooled (isotonic
// regression by least squares).
std::vector<double> survival_of(const std::vector<double>& tokens, std::int64_t drafts) {
  CHECK_THAT(static_cast<std::int64_t>(tokens.size()) >= drafts, "more drafts than were measured");
  struct Pool {
    double sum;
    int count;
    double mean() const { return sum / count; }
  };
  std::vector<Pool> pools;
  double before = 1;
  for (std::int64_t k = 0; k < drafts; ++k) {
    const double now = tokens[static_cast<std::size_t>(k)];
    pools.push_back({now - before, 1});
    before = now;
    while (pools.size() > 1 &&
           (pools.back().mean() > pools[pools.size() - 2].mean() || pools.back().mean() < 0)) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> survival;
  for (const Pool& pool : pools) survival.insert(survival.end(), pool.count, pool.mean());
  return survival;
}

std::vector<double> parse_acceptance(std::string_view text, std::int64_t drafts,
                                     const std::string& flag,
                                     const std::vector<std::string>& labels) {
  const auto refuse = [&](const std::string& expected) {
    throw Error({.file = flag,
                 .path = "",
                 .found = fmt::format("\"{}\"", text),
                 .expected = expected,
                 .nearest = nearest_name(text, labels)});
  };
  std::vector<double> survival;
  double chance = 0, reached = 1;
  for (std::string_view left = text;;) {
    const std::size_t end = std::min(left.find(':'), left.size());
    const auto [stop, failed] = std::from_chars(left.data(), left.data() + end, chance);
    if (failed != std::errc() || stop != left.data() + end || !(chance >= 0 && chance <= 1))
      refuse(labels.empty() ? form
                            : fmt::format("{}, or one of {}", form, fmt::join(labels, ", ")));
    survival.push_back(reached *= chance);
    if (end == left.size()) break;
    left.remove_prefix(end + 1);
  }
  if (static_cast<std::int64_t>(survival.size()) > drafts)
    refuse(fmt::format("at most {} chances, one for each draft", drafts));
  while (static_cast<std::int64_t>(survival.size()) < drafts) survival.push_back(reached *= chance);
  return survival;
}

}  // namespace orrery
