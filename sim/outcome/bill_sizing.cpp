// Knows how many accelerators a limit of power, money or floor allows.
#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/outcome/bill_inputs.h"

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
    found.count = unit * most([](const BillSum<double>& sum) { return sum.value; }, false);
    found.low = found.high = found.count;
    if (question_.ranges) {
      // The high end of a cost is the low end of a count.
      found.low = unit * most([](const BillSum<double>& sum) { return sum.high; }, true);
      found.high = unit * most([](const BillSum<double>& sum) { return sum.low; }, true);
    }
    found.fabric_limit = fabric_limit_;
    return found;
  }

 private:
  using End = double (*)(const BillSum<double>&);

  // Bills grow with the number: doubling finds a number that is too large, halving the last one
  // that is not.
  std::int64_t most(End end, bool ranges) {
    if (!fits(1, end, ranges)) return 0;
    std::int64_t good = 1, bad = 2;
    while (bad <= most_units && fits(bad, end, ranges)) {
      good = bad;
      bad *= 2;
    }
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      (fits(middle, end, ranges) ? good : bad) = middle;
    }
    return good;
  }

  bool fits(std::int64_t units, End end, bool ranges) {
    BillQuestion question = question_;
    question.ranges = ranges;
    question.accelerators = units * BillPass::unit_of(cluster_);
    question.spares = std::min(
        question.accelerators - 1,
        static_cast<std::int64_t>(spare_share_ * static_cast<double>(question.accelerators)));
    try {
      return end(measure_(bill(cluster_, facts_, question))) <= limit_ * (1 + 1e-12);
    } catch (const Error&) {
      // The first answers for the question itself; beyond it the fabric has no more places.
      if (units == 1) throw;
      fabric_limit_ = true;
      return false;
    }
  }

  static constexpr std::int64_t most_units = std::int64_t{1} << 32;
  const Cluster& cluster_;
  const BillFacts& facts_;
  const BillQuestion& question_;
  Measure measure_;
  double limit_ = 0, spare_share_ = 0;
  bool fabric_limit_ = false;
};

AffordableCount size_for(const Cluster& cluster, const BillFacts& facts,
                         const BillQuestion& question, const char* what, double limit,
                         Measure measure) {
  if (!(limit > 0 && std::isfinite(limit)))
    throw Error({.file = "bill",
                 .path = what,
                 .found = fmt::format("{}", limit),
                 .expected = "a limit above 0"});
  // Part of a bill is no bill: an unknown part would make room for too many.
  const Measure complete = [&measure, what](const Bill& b) {
    BillSum<double> sum = measure(b);
    if (!sum.unknown.empty())
      throw Error({.file = "bill",
                   .path = what,
                   .found = fmt::format("no value of {}", sum.unknown.front()),
                   .expected = "a cluster and a site of which it is known; a file with "
                               "\"based_on\" can supply it"});
    return sum;
  };
  return Sizing(cluster, facts, question, complete, limit).run();
}

}  // namespace

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
