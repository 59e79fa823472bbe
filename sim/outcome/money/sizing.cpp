// SPDX-License-Identifier: Apache-2.0
// Knows how many accelerators a limit of power, money or floor allows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include <fmt/format.h>

#include "sim/base/errors/check.h"
#include "sim/outcome/money/inputs.h"

namespace orrery {
namespace {

// What is held against the limit, of one bill.
using Measure = std::function<BillSum<double>(const Bill&)>;

BillSum<double> plain(const auto& sum) {
  return {.value = in_si(sum.value),
          .low = in_si(sum.low),
          .high = in_si(sum.high),
          .unknown = sum.unknown};
}

class Sizing {
 public:
  Sizing(const Cluster& cluster, const BillFacts& facts, const BillQuestion& question,
         Measure measure, double limit)
      : cluster_(cluster),
        facts_(facts),
        question_(question),
        measure_(std::move(measure)),
        limit_(limit),
        spare_share_(question.accelerators > 0 ? static_cast<double>(question.spares) /
                                                     static_cast<double>(question.accelerators)
                                               : 0) {}

  AffordableCount run() {
    const std::int64_t unit = BillPass::unit_of(cluster_);
    AffordableCount found;
    const Most values = most([](const BillSum<double>& sum) { return sum.value; }, false);
    found.count = found.low = found.high = unit * values.units;
    found.fabric_limit = values.by == Outcome::not_joined;
    if (question_.ranges) {
      // The high end of a cost is the low end of a count.
      found.low = unit * most([](const BillSum<double>& sum) { return sum.high; }, true).units;
      found.high = unit * most([](const BillSum<double>& sum) { return sum.low; }, true).units;
    }
    return found;
  }

 private:
  using End = double (*)(const BillSum<double>&);
  enum class Outcome : std::uint8_t { within, beyond, not_joined };
  struct Most {
    std::int64_t units = 0;
    Outcome by = Outcome::beyond;  // of one unit more
  };

  // Bills grow with the number: doubling finds a number that is too large, halving the last one
  // that is not.
  Most most(End end, bool ranges) {
    Most found{.by = at(1, end, ranges)};
    if (found.by != Outcome::within) return found;
    std::int64_t bad = 2;
    for (found.units = 1; bad <= most_units; bad *= 2) {
      found.by = at(bad, end, ranges);
      if (found.by != Outcome::within) break;
      found.units = bad;
    }
    while (bad - found.units > 1) {
      const std::int64_t middle = found.units + (bad - found.units) / 2;
      const Outcome outcome = at(middle, end, ranges);
      (outcome == Outcome::within ? found.units : bad) = middle;
      if (outcome != Outcome::within) found.by = outcome;
    }
    return found;
  }

  Outcome at(std::int64_t units, End end, bool ranges) {
    BillQuestion question = question_;
    question.ranges = ranges;
    question.accelerators = units * BillPass::unit_of(cluster_);
    question.spares = std::min(
        question.accelerators - 1,
        static_cast<std::int64_t>(spare_share_ * static_cast<double>(question.accelerators)));
    Bill whole;
    try {
      whole = bill(cluster_, facts_, question);
    } catch (const Error&) {
      // The first answers for the question itself; beyond it the fabric has no more places.
      if (units == 1) throw;
      return Outcome::not_joined;
    }
    return end(measure_(whole)) <= limit_ * (1 + 1e-12) ? Outcome::within : Outcome::beyond;
  }

  static constexpr std::int64_t most_units = std::int64_t{1} << 32;
  const Cluster& cluster_;
  const BillFacts& facts_;
  const BillQuestion& question_;
  Measure measure_;
  double limit_ = 0, spare_share_ = 0;
};

AffordableCount size_for(const Cluster& cluster, const BillFacts& facts,
                         const BillQuestion& question, const char* what, double limit,
                         Measure measure) {
  if (!(limit > 0 && std::isfinite(limit)))
    throw Error({.file = "bill",
                 .path = what,
                 .found = fmt::format("{}", limit),
                 .expected = "a limit above 0"});
  const Measure complete = [&measure, what](const Bill& b) {
    BillSum<double> sum = measure(b);
    if (const std::string missing = first_essential(sum.unknown); !missing.empty())
      throw Error({.file = "bill",
                   .path = what,
                   .found = fmt::format("no value of {}", missing),
                   .expected = "a cluster and a site of which it is known; a file with "
                               "\"based_on\" can supply it"});
    return sum;
  };
  return Sizing(cluster, facts, question, complete, limit).run();
}

}  // namespace

std::string first_essential(const std::vector<std::string>& unknown) {
  for (const std::string& name : unknown)
    for (const char* kind : {"accelerator ", "cloud ", "site ", "economics "})
      if (name.starts_with(kind)) return name;
  return "";
}

AffordableCount accelerators_for_power(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, Watts limit, PowerLimit kind) {
  return size_for(cluster, facts, question, "power", limit.si(), [kind](const Bill& b) {
    if (kind == PowerLimit::it_peak) return plain(b.it_peak);
    return plain(kind == PowerLimit::facility_mean ? b.facility_mean : b.facility_peak);
  });
}

AffordableCount accelerators_for_money(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, Dollars limit,
                                       MoneyLimit kind) {
  if (kind == MoneyLimit::job && !question.duration.known())
    throw Error({.file = "bill",
                 .path = "duration",
                 .found = "none",
                 .expected = "a duration: money for a job buys accelerators for a time"});
  if (kind == MoneyLimit::capital && question.ownership == Ownership::rent)
    throw Error({.file = "bill",
                 .path = "money",
                 .found = "capital, of rented accelerators",
                 .expected = "money for a job, or accelerators that are bought"});
  return size_for(cluster, facts, question, "money", limit.si(), [kind](const Bill& b) {
    return plain(kind == MoneyLimit::capital ? b.capital_total : b.job->cost);
  });
}

AffordableCount accelerators_for_racks(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, double racks) {
  return size_for(cluster, facts, question, "racks", racks,
                  [](const Bill& b) { return plain(b.floor.racks); });
}

AffordableCount accelerators_for_floor(const Cluster& cluster, const BillFacts& facts,
                                       const BillQuestion& question, double white_square_metres) {
  return size_for(cluster, facts, question, "floor", white_square_metres,
                  [](const Bill& b) { return plain(b.floor.white_square_metres); });
}

}  // namespace orrery
