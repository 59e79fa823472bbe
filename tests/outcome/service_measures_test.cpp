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

TEST_CASE("a replica that was stopped serves no request until it has started again", "[service]") {
  TwoReplicas two;
  // Both lose their host at 3 o'clock. One waits for an hour, and takes 45 minutes to start; the
  // other has its place at once. They leave as much later.
  const FleetService service = service_of(flat(20));
  ReplicaStops stops({service}, two.jobs);
  const auto tell = [&](double at, FleetEventKind kind, std::uint32_t job) {
    stops.take({.at = hours(at), .kind = kind, .job = job});
  };
  for (std::uint32_t job = 0; job < 3; ++job) tell(0, FleetEventKind::start, job);
  tell(3, FleetEventKind::stop, 0);
  tell(3, FleetEventKind::restart, 1);
  tell(3, FleetEventKind::restart, 2);  // of somebody else
  tell(4, FleetEventKind::start, 0);
  two.record.jobs[0].stops = two.record.jobs[1].stops = 1;
  two.record.jobs[0].waited_again = hours(1);
  two.record.jobs[0].end = two.record.last_end = hours(12.25);
  two.record.jobs[1].end = hours(11.25);
  const ServiceMeasures m = service_measures(service, two.jobs, two.record, stops);
  // 20 requests a second come. None is taken for 45 minutes, and half of them for an hour.
  CHECK(m.refused == Approx((0.75 + 0.5) / 10));
  CHECK(m.replicas == Approx((2 * 10 - 2 * 0.75 - 1) / 10));
  CHECK(m.worst_hour == Approx(0.4 * 0.75));
  CHECK(m.worst_at == hours(3.5));
  CHECK(m.gpu_hours == Approx(4 * (12.25 - 1 + 11.25)));
  // One that never has a place again serves nothing after its stop.
  tell(6, FleetEventKind::stop, 1);
  two.record.jobs[1].end = fleet_never;
  const ServiceMeasures gone = service_measures(service, two.jobs, two.record, stops);
  CHECK(gone.replicas < m.replicas - 0.4);
}

TEST_CASE("replicas that the load does not need stand by", "[service]") {
  TwoReplicas two;
  CHECK(service_measures(service_of(flat(10)), two.jobs, two.record).standby_gpu_hours ==
        Approx(40));
  CHECK(service_measures(service_of(flat(11)), two.jobs, two.record).standby_gpu_hours == 0);
  CHECK(service_measures(service_of(flat(30)), two.jobs, two.record).standby_gpu_hours == 0);
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
