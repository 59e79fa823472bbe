// SPDX-License-Identifier: Apache-2.0
// Knows the uncertain inputs of a bill: it reads them by name and can move one to an end.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/units/sourced.h"
#include "sim/outcome/money/bill.h"

namespace orrery {

// Amounts while they are computed: one number, and the names of what is missing in it. Ends are set
// when all inputs have been moved.
template <class Q>
BillSum<Q> exactly(Q value) {
  return {.value = value, .low = value, .high = value, .unknown = {}};
}
inline std::vector<std::string> joined(const std::vector<std::string>& a,
                                       const std::vector<std::string>& b) {
  std::vector<std::string> all = a;
  for (const std::string& name : b)
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  return all;
}
template <class Q>
BillSum<Q> operator+(const BillSum<Q>& a, const BillSum<Q>& b) {
  BillSum<Q> sum = exactly<Q>(a.value + b.value);
  sum.unknown = joined(a.unknown, b.unknown);
  return sum;
}
template <class A, class B>
auto operator*(const BillSum<A>& a, const BillSum<B>& b) {
  auto product = exactly(a.value * b.value);
  product.unknown = joined(a.unknown, b.unknown);
  return product;
}
template <class A, class B>
auto operator/(const BillSum<A>& a, const BillSum<B>& b) {
  // Only what is unknown is 0 below a fraction.
  using Ratio = decltype(a.value / b.value);
  auto ratio = exactly(in_si(b.value) == 0 ? Ratio{} : a.value / b.value);
  ratio.unknown = joined(a.unknown, b.unknown);
  return ratio;
}
template <class Q>
BillSum<Q> operator*(const BillSum<Q>& a, double factor) {
  return a * exactly(factor);
}

class BillInputs {
 public:
  struct Input {
    std::string path;
    double value = 0, low = 0, high = 0;
    Evidence evidence = Evidence::assumed;
    std::string source;
  };

  // The value, or the end to which this input is moved. What is absent is 0 and named by `path`.
  template <class Q>
  BillSum<Q> read(const std::string& path, const Sourced<Q>& sourced) {
    BillSum<Q> read{};
    if (!sourced.known()) {
      read.unknown.push_back(path);
      return read;
    }
    note_basis(sourced.evidence, sourced.source);
    const double value = in_si(*sourced.value);
    const double low = sourced.low ? in_si(*sourced.low) : value;
    const double high = sourced.high ? in_si(*sourced.high) : value;
    if (moved_.empty())
      remember({path, value, low, high, sourced.evidence, sourced.source});
    else if (path == moved_)
      return exactly(Q(to_high_ ? high : low));
    return exactly(*sourced.value);
  }

  // From here on `path` is at an end of its range.
  void move(const std::string& path, bool to_high) {
    moved_ = path;
    to_high_ = to_high;
  }
  bool moving() const { return !moved_.empty(); }
  const std::vector<Input>& inputs() const { return inputs_; }

  // What has been read since the last call.
  Basis take_basis() { return std::exchange(basis_, Basis{}); }

 private:
  void remember(Input input) {
    if (input.low == input.value && input.high == input.value) return;
    for (const Input& known : inputs_)
      if (known.path == input.path) return;
    inputs_.push_back(std::move(input));
  }
  void note_basis(Evidence evidence, const std::string& source) {
    if (moving()) return;
    basis_.evidence = std::max(basis_.evidence, evidence);
    auto& ids = basis_.sources;
    if (!source.empty() && std::find(ids.begin(), ids.end(), source) == ids.end())
      ids.push_back(source);
  }

  std::vector<Input> inputs_;
  std::string moved_;
  bool to_high_ = false;
  Basis basis_;
};

// Calls visit(amount) on every amount of a bill, in a fixed order.
template <class BillRef, class Visit>
void visit_amounts(BillRef& b, Visit&& visit) {
  for (auto& line : b.capital) visit(line.amount);
  for (auto& line : b.running) visit(line.rate);
  for (auto& line : b.power) {
    visit(line.peak);
    visit(line.mean);
  }
  for (auto& amount : b.capital_by_group) visit(amount);
  visit(b.capital_total);
  visit(b.depreciation);
  visit(b.running_total);
  visit(b.it_peak);
  visit(b.it_mean);
  visit(b.facility_peak);
  visit(b.facility_mean);
  visit(b.floor.racks);
  visit(b.floor.white_square_metres);
  visit(b.floor.building_square_metres);
  visit(b.owning_per_accelerator);
  visit(b.renting_per_accelerator);
  if (!b.job) return;
  auto& job = *b.job;
  visit(job.accelerator_energy);
  visit(job.it_energy);
  visit(job.facility_energy);
  visit(job.operational_carbon);
  visit(job.embodied_carbon);
  visit(job.water_cubic_metres);
  for (auto& line : job.lines) visit(line.amount);
  visit(job.cost);
  visit(job.commitment);
  visit(job.dollars_per_million_tokens);
  visit(job.tokens_per_dollar);
  visit(job.tokens_per_joule);
  visit(job.tokens_per_second_per_dollar_per_watt);
}

// One evaluation with the inputs as they stand: values only, low and high are those of the values.
struct BillPass {
  const Cluster& cluster;
  const BillFacts& facts;
  const BillQuestion& question;
  const NetworkBill& network;
  BillInputs& inputs;
  Bill bill;

  double hosts() const {
    return static_cast<double>(bill.bought) / static_cast<double>(cluster.gpus_per_host);
  }
  // Share of owned time that has work.
  BillSum<double> utilisation() {
    if (question.utilisation) return exactly(*question.utilisation);
    return inputs.read(economics_path("utilisation"), facts.economics.utilisation);
  }
  // Names of inputs.
  std::string accelerator_path(std::string_view what) const {
    return named("accelerator ", cluster.device.name, what);
  }
  std::string host_path(std::string_view what) const {
    return named("host ", cluster.host.name, what);
  }
  std::string site_path(std::string_view what) const {
    return named("site ", facts.site.name, what);
  }
  std::string economics_path(std::string_view what) const {
    return named("economics ", facts.economics.name, what);
  }
  std::string storage_path(std::string_view what) const {
    return named("storage ", facts.storage.name, what);
  }
  static std::string named(std::string_view kind, std::string_view name, std::string_view what) {
    std::string path(kind);
    path += name;
    path += ": ";
    return path += what;
  }
  // Machines come in such units: whole hosts, and racks where the accelerator's price is a share of
  // a rack's.
  static std::int64_t unit_of(const Cluster& cluster) {
    return whole_racks_of(cluster) ? std::max(cluster.gpus_per_host, cluster.fabric.scale_up.domain)
                                   : cluster.gpus_per_host;
  }
  static bool whole_racks_of(const Cluster& cluster) {
    return cluster.device.price_includes.scale_up;
  }
  bool rents() const { return question.ownership == Ownership::rent; }
};

// In this order; each adds to pass.bill what its name says.
void add_power(BillPass& pass);
void add_floor(BillPass& pass);
void add_capital(BillPass& pass);
void add_running(BillPass& pass);
void add_job(BillPass& pass);

// How many units of storage hold the bytes and carry the rates; 0: none are asked for.
double storage_units(BillPass& pass);

}  // namespace orrery
