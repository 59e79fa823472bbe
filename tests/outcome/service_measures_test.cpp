// SPDX-License-Identifier: Apache-2.0
// Tests what a served model comes to by the records of its replicas, by hand.
#include <catch2/catch.hpp>

#include "sim/outcome/fleet/service_measures.h"

namespace orrery {
namespace {

constexpr FleetTime hours(double n) { return {static_cast<std::int64_t>(n * 3.6e9)}; }

// A replica bears 10 requests a second of two tokens, of which it keeps 80% in time: all of them
// where nobody comes. It draws 100 W, and 20 W for each request a second.
FleetService service_of(const LoadCurve& load) {
  const std::vector<ServedLoad> loads = {
      {.rate = 0, .kept = 1, .tokens = 0, .power = Watts(100)},
      {.rate = 10, .kept = 0.8, .tokens = 20, .power = Watts(300)},
      {.rate = 20, .kept = 0, .tokens = 20, .power = Watts(300)}};
  return {.id = "chat",
          .table = std::make_shared<const ServiceTable>(loads, SaturatedService{.rate = 10}),
          .load = load,
          .rule = {.bears = 10, .start = hours(0.5)},
          .gpus = 4,
          .open = hours(0.5),
          .close = hours(10.5),
          .work = 3};
}

LoadCurve flat(double rate) { return LoadCurve({{.length = seconds(3600), .rate = Hertz(rate)}}); }

// Two replicas that came at once and served until the end.
struct TwoReplicas {
  ClusterJobs jobs;
  FleetRecord record;
  TwoReplicas() {
    for (int i = 0; i < 2; ++i) {
      jobs.jobs.push_back({.length = hours(10), .gpus = 4, .work = 3});
      record.jobs.push_back({.start = hours(0), .end = hours(10.5)});
    }
    jobs.jobs.push_back({.length = hours(10), .gpus = 4, .work = 1});  // of somebody else
    record.jobs.push_back({.start = hours(0), .end = hours(10.5)});
    record.last_end = hours(10.5);
  }
};

}  // namespace

TEST_CASE("a load that all replicas bear is served as the table says", "[service]") {
  TwoReplicas two;
  const ServiceMeasures m = service_measures(service_of(flat(10)), two.jobs, two.record);
  CHECK(m.requests == Approx(36'000 * 10));
  CHECK(m.refused == 0);
  CHECK(m.kept == Approx(0.9));  // 5 a second each
  CHECK(m.worst_hour == Approx(0.9));
  CHECK(m.tokens == Approx(2 * m.requests));
  CHECK(m.replicas == Approx(2));
  CHECK(m.most_replicas == 2);
  CHECK(m.gpu_hours == Approx(2 * 4 * 10.5));
  CHECK(m.power.si() == Approx(200));
}

TEST_CASE("what nobody takes is refused, and the worst hour is named", "[service]") {
  TwoReplicas two;
  const FleetService service = service_of(flat(20));
  CHECK(service_measures(service, two.jobs, two.record).kept == Approx(0.8));
  two.record.jobs[0].start = hours(2);  // an hour and a half later than it was asked for
  const ServiceMeasures m = service_measures(service, two.jobs, two.record);
  CHECK(m.refused == Approx(0.5 * 2 / 10));
  CHECK(m.kept == Approx(0.8 * (1 - m.refused)));
  CHECK(m.worst_hour == Approx(0.4));
  CHECK(m.worst_at == service.open);
  CHECK(m.replicas == Approx(1.8));
  // Nobody is there at all.
  two.record.jobs[0].start = two.record.jobs[1].start = fleet_never;
  const ServiceMeasures none = service_measures(service, two.jobs, two.record);
  CHECK(none.refused == 1);
  CHECK(none.kept == 0);
  CHECK(none.tokens == 0);
}

TEST_CASE("replicas that were stopped count by the chance that they serve", "[service]") {
  TwoReplicas two;
  // One was stopped for an hour in the whole, and came to its end an hour later: 1/11 of its time.
  two.record.jobs[0].stops = 1;
  two.record.jobs[0].end = two.record.last_end = hours(11.5);
  const ServiceMeasures m = service_measures(service_of(flat(20)), two.jobs, two.record);
  CHECK(m.refused == Approx(0.5 / 11));
  CHECK(m.replicas == Approx(2 - 1.0 / 11));
  // Both: none serves in one of 121 cases.
  two.record.jobs[1] = two.record.jobs[0];
  const ServiceMeasures both = service_measures(service_of(flat(10)), two.jobs, two.record);
  CHECK(both.refused == Approx(1.0 / 121));
  CHECK(both.kept == Approx((100 * 0.9 + 20 * 0.8) / 121));
}

TEST_CASE("a run that ends early has served until then", "[service]") {
  TwoReplicas two;
  two.record.cut = true;
  two.record.last_end = hours(5.5);
  const ServiceMeasures m = service_measures(service_of(flat(10)), two.jobs, two.record);
  CHECK(m.requests == Approx(5 * 3600 * 10));
  CHECK(m.kept == Approx(0.9));
  CHECK(m.gpu_hours == Approx(2 * 4 * 5.5));
  ServiceMeasures other;
  other.requests = m.requests;
  other.kept = 0.5;
  CHECK(kept_share({m, other}) == Approx(0.7));
  CHECK(kept_share({}) == 1);
}

}  // namespace orrery
