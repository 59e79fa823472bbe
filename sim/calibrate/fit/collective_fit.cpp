// SPDX-License-Identifier: Apache-2.0
// Tells which constants each kind of collective shows, and searches them kind by kind.
#include "sim/calibrate/fit/collective_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "hw_models/catalog.h"
#include "sim/base/errors/check.h"
#include "sim/base/json/tree.h"
#include "sim/base/statistics.h"
#include "sim/engine/collectives/collectives.h"

namespace orrery {

namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;

enum class Term : std::uint8_t { base, hop, share, window, copy, pass, largest, channels, channel };

// How a term is called, and in which box it is looked for (SI units).
struct TermFacts {
  const char* name;
  double low, high, start;  // start: where the generation has none
};
constexpr TermFacts facts(Term term) {
  switch (term) {
    case Term::base:
      return {"base", 1e-6, 60e-6, 6e-6};
    case Term::hop:
      return {"hop", 1e-9, 20e-6, 1e-6};
    case Term::share:
      return {"share", 0.005, 1, 0.5};
    case Term::window:
      return {"window", 1e3, 100e6, 1e6};
    case Term::copy:
      return {"copy", 20e9, 20e12, 1e12};
    case Term::pass:
      return {"pass", 1e-9, 5e-6, 0.2e-6};
    case Term::largest:
      return {"largest", 1e3, 1e9, 256e3};
    case Term::channels:
      return {"channels", 1, 1e3, 16};
    case Term::channel:
      return {"channel", 1, 1e9, 4e3};
  }
  return {};
}

std::string written(Term term, double value) {
  switch (term) {
    case Term::base:
    case Term::hop:
    case Term::pass:
      return fmt::format("{:.4g} us", value * 1e6);
    case Term::share:
    case Term::channels:
      return fmt::format("{:.4g}", value);
    case Term::window:
    case Term::largest:
      return fmt::format("{:.4g} MB", value * 1e-6);
    case Term::channel:
      return fmt::format("{:.6g} B", value);
    case Term::copy:
      return fmt::format("{:.4g} GB/s", value * 1e-9);
  }
  return "";
}

// Calls visit(value in SI units) on the term of the step, whatever its type.
template <class Step, class Visit>
void with_term(Step& step, Term term, Visit&& visit) {
  switch (term) {
    case Term::base:
      return visit(step.base);
    case Term::hop:
      return visit(step.hop);
    case Term::share:
      return visit(step.share);
    case Term::window:
      return visit(step.window);
    case Term::copy:
      return visit(step.copy);
    case Term::pass:
      return visit(step.pass);
    case Term::largest:
      return visit(step.largest);
    case Term::channels:
      return visit(step.channels);
    case Term::channel:
      return visit(step.channel);
  }
}

void set(StepCosts& step, Term term, double value, const std::string& source) {
  with_term(step, term, [&]<class T>(Sourced<T>& s) {
    s = {.value = T(value), .evidence = Evidence::measured, .source = source, .reason = "fitted"};
  });
}

std::optional<double> get(const StepCosts& step, Term term) {
  std::optional<double> value;
  with_term(step, term, [&](const auto& s) {
    if (s.known()) value = in_si(*s.value);
  });
  return value;
}

// One algorithm with one protocol that a kind of collective runs.
struct Block {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  auto operator<=>(const Block&) const = default;

  // All-reduces stand for the ring and all-to-alls for direct exchanges; other kinds have their
  // own.
  StepCosts& in(CollectiveCosts& costs) const {
    if (kind == CollectiveKind::send_receive) return costs.send[static_cast<int>(protocol)];
    if (kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all)
      return costs.steps[static_cast<int>(algorithm)][static_cast<int>(protocol)];
    const KindStep key{.kind = kind, .algorithm = algorithm, .protocol = protocol};
    return costs.kinds.try_emplace(key, costs.of(algorithm, protocol)).first->second;
  }
  std::string path() const {
    if (kind == CollectiveKind::send_receive) return fmt::format("send.{}", to_text(protocol));
    if (kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_to_all)
      return fmt::format("{}.{}", to_text(algorithm), to_text(protocol));
    return to_text(KindStep{.kind = kind, .algorithm = algorithm, .protocol = protocol});
  }
};

struct FreeTerm {
  Block block;
  Term term;
  double start = 0;  // the generation's; 0: none
};

std::vector<FreeTerm> free_terms(CollectiveKind kind, CollectiveCosts& costs) {
  std::vector<FreeTerm> out;
  const auto add = [&](Algorithm algorithm, Protocol protocol, std::initializer_list<Term> terms) {
    const Block block{.kind = kind, .algorithm = algorithm, .protocol = protocol};
    for (const Term term : terms)
      out.push_back(
          {.block = block, .term = term, .start = get(block.in(costs), term).value_or(0)});
  };
  using enum Term;
  switch (kind) {
    case CollectiveKind::all_to_all:
      add(Algorithm::direct, Protocol::ll, {base, hop, share});
      add(Algorithm::direct, Protocol::simple, {base, hop, share, window, copy});
      break;
    case CollectiveKind::send_receive:
      add(Algorithm::direct, Protocol::simple, {base, share, window});
      break;
    case CollectiveKind::broadcast:
      add(Algorithm::ring, Protocol::ll, {base, hop, pass, share});
      add(Algorithm::ring, Protocol::ll128, {base, hop, pass, share});
      add(Algorithm::ring, Protocol::simple, {base, hop, pass, share, window});
      break;
    default:
      add(Algorithm::ring, Protocol::ll, {base, hop, pass, share, copy});
      add(Algorithm::ring, Protocol::ll128, {base, hop, pass, share, copy});
      add(Algorithm::ring, Protocol::simple, {base, hop, pass, share, window, copy});
  }
  return out;
}

struct Row {
  Collective call;
  const Fabric* fabric = nullptr;
  std::optional<Protocol> forced;
  double measured = 0;
  double sms = 0;  // that the kernel took, a channel each; 0: not told
  bool held_out = false;
  std::uint64_t family = 0;
};

double predicted(const Row& row, const CollectiveCosts& costs) {
  if (!row.forced) return collective_time(row.call, *row.fabric, costs).time.si();
  const auto time =
      collective_time_with(row.call, *row.fabric, costs, Algorithm::ring, *row.forced);
  return time ? time->time.si() : row.measured;
}

// One domain of the device alone, with and without multicast.
struct Domains {
  Fabric plain, multicast;
};
Domains domains_of(const Device& device, std::int64_t ranks) {
  Fabric fabric;
  fabric.name = "one domain of " + device.name;
  fabric.scale_up.link = device.scale_up_link;
  fabric.scale_up.domain = ranks;
  fabric.scale_up.bandwidth = device.scale_up_bandwidth;
  fabric.scale_out.kind = ScaleOutKind::none;
  Domains out{.plain = fabric, .multicast = fabric};
  out.multicast.scale_up.in_network_reduction = true;
  return out;
}

std::vector<Row> rows_of(const MeasuredLog& log, CollectiveKind kind, const Domains& domains) {
  std::vector<Row> rows;
  for (const Sample& s : log.samples) {
    if (collective_kind_text.find(s.kind) != kind || s.library != "nccl" || s.mode != "graph")
      continue;
    if (s.variant == "shift") continue;  // every rank sends and receives at once
    const RunConditions& at = log.conditions.at(static_cast<std::size_t>(s.conditions));
    const auto nvls = at.libraries.find("nvls");
    const bool off = nvls != at.libraries.end() && nvls->second == "off";
    const auto ranks = static_cast<std::int64_t>(s.number("ranks"));
    Row row{.call = {.kind = kind, .bytes = Bytes(s.number("bytes"))},
            .fabric = off ? &domains.plain : &domains.multicast,
            .forced = collective_protocol_text.find(s.text_or("protocol", "default")),
            .measured = s.time.si(),
            .sms = s.numbers.contains("sms") ? s.number("sms") : 0,
            .held_out = is_held_out(s),
            .family = s.family};
    row.call.group.size = row.call.group.per_domain = row.call.group.span = ranks;
    rows.push_back(row);
  }
  return rows;
}

// 0 of none.
double percentile_or_none(const std::vector<double>& values, double percent) {
  return values.empty() ? 0 : percentile(values, percent);
}

// One kind's fit: constants by least squares, and by trial the sizes up to which protocols are
// used.
class KindFit {
 public:
  KindFit(CollectiveKind kind, const std::vector<Row>& rows, const CollectiveFitOptions& options,
          CollectiveCosts& costs)
      : options_(options), costs_(costs), terms_(free_terms(kind, costs)) {
    for (const Row& row : rows)
      if (!row.held_out) rows_.push_back(&row);
    // Where NCCL alone chose, LL128 cannot be told from its neighbours: it stays the generation's.
    const bool told = std::any_of(rows_.begin(), rows_.end(),
                                  [](const Row* row) { return row->forced == Protocol::ll128; });
    if (!told)
      std::erase_if(terms_, [](const FreeTerm& t) { return t.block.protocol == Protocol::ll128; });
    std::erase_if(
        terms_, [&](const FreeTerm& t) { return t.term == Term::pass && !find_channels(t.block); });
    // What a kind takes from the ring may lie at the edge of its box, where a search is stuck.
    for (const FreeTerm& t : terms_)
      values_.push_back(t.start > 2 * facts(t.term).low ? t.start : facts(t.term).start);
  }
  bool possible() const { return rows_.size() >= terms_.size(); }

  // Limits move what each protocol's constants are fitted to, and the other way round.
  std::vector<CollectiveConstant> run() {
    LeastSquaresOptions rough = options_.search;
    rough.refits = 0;
    search(rough);
    for (int round = 0; round < 2; ++round) {
      place_limits();
      if (round == 0) search(rough);
    }
    const LeastSquaresFit last = search(options_.search);
    std::vector<CollectiveConstant> out;
    for (std::size_t i = 0; i < terms_.size(); ++i)
      out.push_back(constant(terms_[i].block, terms_[i].term, values_[i], terms_[i].start,
                             i < last.errors.size() ? last.errors[i] : 0));
    for (const auto& [block, limit] : limits_)
      out.push_back(constant(block, Term::largest, limit, 0, 0));
    for (const auto& [block, found] : channels_) {
      out.push_back(constant(block, Term::channels, found.most, 0, 0));
      out.push_back(constant(block, Term::channel, found.bytes, 0, 0));
    }
    return out;
  }

 private:
  static CollectiveConstant constant(const Block& block, Term term, double value, double start,
                                     double error) {
    return {.path = fmt::format("{}.{}", block.path(), facts(term).name),
            .value = value,
            .start = start,
            .error = error,
            .written = written(term, value)};
  }

  // From the SMs of calls that do not use all channels. False: no such calls. Without forced
  // protocols only LL's are known: the smallest messages'.
  bool find_channels(const Block& block) {
    const bool told = std::any_of(rows_.begin(), rows_.end(),
                                  [](const Row* row) { return row->forced.has_value(); });
    if (!told && block.protocol != Protocol::ll) return false;
    Channels found;
    const auto own = [&](const Row& row) {
      return row.sms > 0 && (!told || row.forced == block.protocol);
    };
    for (const Row* row : rows_)
      if (own(*row)) found.most = std::max(found.most, row->sms);
    std::vector<double> parts;
    for (const Row* row : rows_)
      if (own(*row) && row->sms > 1 && row->sms < 0.8 * found.most)
        parts.push_back(row->call.bytes.si() / static_cast<double>(row->call.group.size) /
                        row->sms);
    if (parts.empty()) return false;
    found.bytes = percentile_or_none(parts, 50);
    set(block.in(costs_), Term::channels, found.most, options_.source);
    set(block.in(costs_), Term::channel, found.bytes, options_.source);
    channels_[block] = found;
    return true;
  }

  void put(std::span<const double> x, CollectiveCosts& costs) const {
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      StepCosts& step = terms_[i].block.in(costs);
      step.present = true;
      set(step, terms_[i].term, x[i], options_.source);
    }
  }

  LeastSquaresFit search(const LeastSquaresOptions& options) {
    LeastSquaresProblem problem;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      const TermFacts f = facts(terms_[i].term);
      problem.free.push_back({.low = f.low, .high = f.high, .start = values_[i]});
    }
    // The generation's constants pull a little: where the rows cannot tell two terms apart, each
    // stays near what other machines of the generation showed.
    constexpr double pull = 0.03;
    problem.rows = rows_.size() + terms_.size();
    problem.residuals = [&](std::span<const double> x, std::span<double> r) {
      CollectiveCosts costs = costs_;
      put(x, costs);
      for (std::size_t i = 0; i < rows_.size(); ++i)
        r[i] = std::log(predicted(*rows_[i], costs) / rows_[i]->measured);
      for (std::size_t i = 0; i < terms_.size(); ++i)
        r[rows_.size() + i] = terms_[i].start > 0 ? pull * std::log(x[i] / terms_[i].start) : 0.0;
    };
    for (const Row* row : rows_) problem.families.push_back(row->family);
    for (std::size_t i = 0; i < terms_.size(); ++i) problem.families.push_back(~i);
    LeastSquaresFit found = fit_least_squares(problem, options);
    values_ = found.values;
    put(values_, costs_);
    return found;
  }

  double cost() const {
    double sum = 0;
    for (const Row* row : rows_)
      if (!row->forced) sum += std::abs(std::log(predicted(*row, costs_) / row->measured));
    return sum;
  }

  // NCCL does not always choose the fastest: below some size it takes LL, below another LL128.
  void place_limits() {
    std::vector<double> parts;  // bytes per rank
    for (const Row* row : rows_)
      if (!row->forced)
        parts.push_back(row->call.bytes.si() / static_cast<double>(row->call.group.size));
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    for (const FreeTerm& t : terms_) {
      if (t.term != Term::base || t.block.protocol == Protocol::simple) continue;
      Sourced<Bytes>& largest = t.block.in(costs_).largest;
      largest = {.reason = "the fastest is chosen"};
      limits_.erase(t.block);
      double best = cost() * 0.97 - 0.02, limit = 0;  // a limit must be worth its while
      for (std::size_t i = 1; i < parts.size(); ++i) {
        largest.value = Bytes(std::sqrt(parts[i - 1] * parts[i]));
        if (const double at = cost(); at < best) {
          best = at;
          limit = largest.value->si();
        }
      }
      largest.value.reset();
      if (limit == 0) continue;
      limits_[t.block] = limit;
      set(t.block.in(costs_), Term::largest, limit, options_.source);
    }
  }

  const CollectiveFitOptions& options_;
  CollectiveCosts& costs_;
  std::vector<FreeTerm> terms_;
  std::vector<const Row*> rows_;
  std::vector<double> values_;
  std::map<Block, double> limits_;
  struct Channels {
    double most = 0, bytes = 0;  // bytes: of a rank's part, for one
  };
  std::map<Block, Channels> channels_;
};

void score_kind(CollectiveKind kind, const std::vector<Row>& rows, const CollectiveCosts& before,
                CollectiveFit& fit) {
  for (const bool forced : {false, true}) {
    for (const bool large : {false, true}) {
      CollectiveErrors errors{.kind = kind, .large = large, .forced = forced};
      std::vector<double> fitted, held, old;
      for (const Row& row : rows) {
        if (row.forced.has_value() != forced || (row.call.bytes.si() >= 1048576) != large) continue;
        const double error = std::abs(predicted(row, fit.costs) / row.measured - 1);
        (row.held_out ? held : fitted).push_back(error);
        if (row.held_out) old.push_back(std::abs(predicted(row, before) / row.measured - 1));
      }
      if (fitted.empty() && held.empty()) continue;
      errors.fitted = static_cast<int>(fitted.size());
      errors.held_out = static_cast<int>(held.size());
      errors.fit_median = percentile_or_none(fitted, 50);
      errors.median = percentile_or_none(held, 50);
      errors.p90 = percentile_or_none(held, 90);
      errors.before_median = percentile_or_none(old, 50);
      errors.before_p90 = percentile_or_none(old, 90);
      fit.errors.push_back(errors);
    }
  }
}

}  // namespace

CollectiveFit fit_collectives(const MeasuredLog& log, const std::string& device,
                              const CollectiveFitOptions& options) {
  const Device known = load_device(device);
  const CollectiveCosts before = load_collective_costs(known.architecture);
  CollectiveFit fit{.source = options.source, .costs = before};
  constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                                      CollectiveKind::broadcast,      CollectiveKind::send_receive};
  const Domains domains = domains_of(known, 8);
  for (const CollectiveKind kind : kinds) {
    const std::vector<Row> rows = rows_of(log, kind, domains);
    if (rows.empty()) continue;
    KindFit search(kind, rows, options, fit.costs);
    if (search.possible())
      for (CollectiveConstant& c : search.run()) fit.constants.push_back(std::move(c));
    score_kind(kind, rows, before, fit);
    for (const Row& row : rows) {
      const std::int64_t ranks = row.call.group.size;
      const double bytes = row.call.bytes.si();
      fit.least_ranks = fit.least_ranks == 0 ? ranks : std::min(fit.least_ranks, ranks);
      fit.most_ranks = std::max(fit.most_ranks, ranks);
      fit.least_bytes = fit.least_bytes == 0 ? bytes : std::min(fit.least_bytes, bytes);
      fit.most_bytes = std::max(fit.most_bytes, bytes);
    }
  }
  return fit;
}

SortedJson collectives_section(const CollectiveFit& fit) {
  SortedJson section;
  for (const CollectiveConstant& c : fit.constants) {
    SortedJson leaf;
    // Shares are plain numbers, everything else has a unit.
    if (c.written.find(' ') == std::string::npos)
      leaf["value"] = std::stod(c.written);
    else
      leaf["value"] = c.written;
    leaf["evidence"] = to_text(Evidence::measured);
    leaf["source"] = fit.source;
    leaf["reason"] = c.value > 0 && c.error > 0
                         ? fmt::format("fitted, standard error {:.2g}%", 100 * c.error / c.value)
                         : "fitted";
    std::string path = c.path;
    std::replace(path.begin(), path.end(), '.', '/');
    section.at_path(path) = std::move(leaf);
  }
  return section;
}

std::string errors_text(const CollectiveFit& fit) {
  std::string text =
      fmt::format("{:16}{:10}{:>7}{:>7}{:>8}{:>8}{:>8}{:>8}{:>8}\n", "collective", "size", "fit",
                  "held", "fit med", "median", "p90", "before", "p90");
  for (const CollectiveErrors& e : fit.errors)
    text += fmt::format("{:16}{:10}{:>7}{:>7}{:>8.1f}{:>8.1f}{:>8.1f}{:>8.1f}{:>8.1f}{}\n",
                        to_text(e.kind), e.large ? ">= 1 MiB" : "< 1 MiB", e.fitted, e.held_out,
                        100 * e.fit_median, 100 * e.median, 100 * e.p90, 100 * e.before_median,
                        100 * e.before_p90, e.forced ? "  forced protocols" : "");
  return text;
}

}  // namespace orrery
