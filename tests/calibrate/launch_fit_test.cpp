// SPDX-License-Identifier: Apache-2.0
// Knows that costs of launches and links come back from samples that were made with them.
#include "sim/calibrate/fit/launch_fit.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "hw_models/catalog.h"
#include "hw_models/kernel/kernel_time.h"
#include "sim/base/random.h"

using namespace orrery;

namespace {

// What a host, a GPU and their links would say whose costs are known.
struct KnownCosts {
  double stream = 1.9e-6, graph = 1.1e-6, host = 2.3e-6, per_parameter = 8e-9;
  double graph_launch = 6e-6, graph_node = 3e-8;
  double efficiency = 0.86, fixed = 7e-6, both_loss = 0.2;
  double noise = 0.02;
};

class Lines {
 public:
  explicit Lines(const KnownCosts& costs, std::uint64_t seed) : costs_(costs), random_(seed, 0) {}

  void launches() {
    for (const double parameters : {0.0, 8.0, 32.0})
      for (const double nodes : {20.0, 50.0, 100.0, 200.0, 400.0}) {
        chain("stream", costs_.stream, parameters, nodes, 0);
        chain("graph", costs_.graph, parameters, nodes, 0);
      }
    for (const double body : {2e-6, 5e-6, 15e-6})
      for (const double nodes : {40.0, 160.0}) {
        chain("stream-busy", costs_.stream, 8, nodes, body);
        chain("graph-busy", costs_.graph, 8, nodes, body);
      }
    for (const double parameters : {0.0, 8.0, 32.0})
      launch("host", costs_.host + costs_.per_parameter * parameters, parameters, 1);
    for (const double nodes : {1.0, 10.0, 100.0, 1000.0})
      launch("graph-host", costs_.graph_launch + costs_.graph_node * nodes, 8, nodes);
  }
  // `first`: of the sizes, for a log that knows less.
  void copies(double bandwidth, double first = 4096) {
    for (double bytes = first; bytes <= 1 << 30; bytes *= 4) {
      const double one = bytes / (bandwidth * costs_.efficiency) + costs_.fixed;
      copy("to-device", bytes, one);
      copy("to-host", bytes, one);
      copy("both", bytes, one / (1 - costs_.both_loss));
    }
  }
  void peers(double bandwidth) {
    for (double bytes = 4096; bytes <= 1 << 28; bytes *= 4) {
      Sample s = timed("peer-copy", "one-way", bytes / (0.8 * bandwidth) + 4e-6);
      s.numbers["bytes"] = bytes;
      log.samples.push_back(s);
    }
  }

  MeasuredLog log;

 private:
  Sample timed(const std::string& kind, const std::string& variant, double seconds) {
    Sample s;
    s.kind = kind;
    s.variant = variant;
    s.time = s.low = s.high = Seconds(seconds * std::exp(random_.normal(0, costs_.noise)));
    return s;
  }
  void launch(const std::string& variant, double seconds, double parameters, double nodes,
              double body = 0) {
    Sample s = timed("launch", variant, seconds);
    s.numbers = {
        {"parameters", parameters}, {"nodes", nodes}, {"blocks", 1}, {"body_us", 1e6 * body}};
    log.samples.push_back(s);
  }
  void chain(const std::string& variant, double each, double parameters, double nodes,
             double body) {
    launch(variant, each + 1e-9 * parameters + 3e-6 / nodes + body, parameters, nodes, body);
  }
  void copy(const std::string& variant, double bytes, double seconds) {
    Sample s = timed("host-copy", variant, seconds);
    s.is_work = true;
    s.kernel.work.kind = WorkKind::host_copy;
    s.kernel.work.bytes_read = variant == "to-host" ? 0 : bytes;
    s.kernel.work.bytes_written = variant == "to-device" ? 0 : bytes;
    s.numbers["bytes"] = bytes;
    log.samples.push_back(s);
  }

  KnownCosts costs_;
  RandomStream random_;
};

}  // namespace

TEST_CASE("launch costs come back within three standard errors and a few percent") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const KnownCosts known{.stream = 1.5e-6 + 0.4e-6 * static_cast<double>(seed)};
    Lines lines(known, seed);
    lines.launches();
    const LaunchFit fit = fit_launches(lines.log, device);
    REQUIRE(fit.stream);
    REQUIRE(fit.graph);
    REQUIRE(fit.host);
    REQUIRE(fit.graph_host);
    CHECK(fit.stream->each.value == Approx(known.stream).epsilon(0.04));
    CHECK(fit.graph->each.value == Approx(known.graph).epsilon(0.06));
    CHECK(fit.host->each.value == Approx(known.host).epsilon(0.06));
    CHECK(fit.graph_host->each.value == Approx(known.graph_node).epsilon(0.15));
    CHECK(fit.graph_host->once.value == Approx(known.graph_launch).epsilon(0.1));
    CHECK(fit.stream->each.error > 0);
    CHECK(fit.stream->each.error < 0.1 * known.stream);
    CHECK(fit.stream->error.rows == 21);
    CHECK(fit.stream->error.median < 0.04);
    CHECK(fit.stream->error.p90 < 0.1);
    CHECK_FALSE(fit.host_link);
    CHECK_FALSE(fit.peer);
    CHECK_FALSE(fit.host_both_loss);
  }
}

TEST_CASE("hosts that differ widen what is stated, and gaps carry it as their range") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  Lines one({.stream = 1.3e-6}, 1), two({.stream = 1.4e-6}, 2);
  one.launches();
  two.launches();
  const double alone = fit_launches(one.log, device).stream->each.error;
  MeasuredLog both = one.log;
  for (Sample s : two.log.samples) {
    s.conditions = 1;
    both.samples.push_back(std::move(s));
  }
  both.conditions.resize(2);
  const LaunchFit fit = fit_launches(both, device);
  CHECK(fit.stream->each.value == Approx(1.35e-6).epsilon(0.03));
  CHECK(fit.stream->each.error == Approx(0.07e-6).epsilon(0.35));
  CHECK(fit.stream->each.error > alone);
  Calibration calibration;
  put(fit, calibration);
  CHECK(calibration.launch_latency.low->si() < 1.3e-6 + 8 * fit.stream->per_parameter.value);
  CHECK(calibration.launch_latency.high->si() > 1.4e-6);
  CHECK_THAT(launches_text(fit), Catch::Matchers::Contains("ns a node"));
}

TEST_CASE("gaps that depend on the chain are seen by the rows left out") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  Lines lines({.noise = 0}, 1);
  lines.launches();
  CHECK(fit_launches(lines.log, device).graph->error.p90 < 0.005);
  for (Sample& s : lines.log.samples)  // beyond a hundred nodes a second queue costs half as much
    if (s.variant == "graph" && s.numbers["nodes"] > 100) s.time = s.time * 1.5;
  CHECK(fit_launches(lines.log, device).graph->error.p90 > 0.1);
}

TEST_CASE("the host link's efficiency, start and loss both ways come back") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  const KnownCosts known;
  Lines lines(known, 4);
  lines.copies(device.host_bandwidth.si());
  lines.peers(device.scale_up_bandwidth.si());
  const LaunchFit fit = fit_launches(lines.log, device);
  REQUIRE(fit.to_device);
  REQUIRE(fit.host_link);
  REQUIRE(fit.peer);
  REQUIRE(fit.host_both_loss);
  CHECK(fit.to_device->efficiency.value == Approx(known.efficiency).epsilon(0.03));
  CHECK(fit.host_link->efficiency.value == Approx(known.efficiency).epsilon(0.02));
  CHECK(fit.host_link->fixed.value == Approx(known.fixed).epsilon(0.05));
  CHECK(fit.host_link->error.rows == 20);
  CHECK(fit.host_link->error.p90 < 0.06);
  CHECK(fit.peer->efficiency.value == Approx(0.8).epsilon(0.03));
  CHECK(*fit.host_both_loss == Approx(known.both_loss).margin(0.03));
  CHECK_FALSE(fit.peer_both_loss);
  CHECK_FALSE(fit.stream);
}

TEST_CASE("a calibration with the fitted costs predicts the copies that they came from") {
  const Device catalogued = load_device("h200-sxm");
  const ResolvedDevice device = catalogued.resolved();
  Lines lines({.noise = 0}, 5);
  lines.launches();
  lines.copies(device.host_bandwidth.si());
  Calibration calibration = load_estimates(catalogued);
  const Sourced<JoulesPerByte> energy = calibration.memory_energy;
  put(fit_launches(lines.log, device), calibration);
  complete(calibration);
  CHECK(calibration.launch_latency.get().si() == Approx(1.9e-6 + 8e-9).epsilon(0.01));
  CHECK(calibration.graph_latency.get().si() == Approx(1.1e-6 + 8e-9).epsilon(0.01));
  CHECK(calibration.launch_latency.evidence == Evidence::measured);
  CHECK(calibration.launch_latency.source == "orrery-measured-h200-sxm");
  CHECK(calibration.memory_energy.value == energy.value);
  for (const Sample& s : lines.log.samples) {
    if (s.variant != "to-device" && s.variant != "to-host") continue;
    const Kernel kernel{.work = s.kernel.work, .library = Library::fused};
    CHECK(kernel_time(kernel, device, calibration).time.si() == Approx(s.time.si()).epsilon(0.01));
  }
}

TEST_CASE("a log without launches and links changes nothing") {
  const Device catalogued = load_device("h200-sxm");
  Calibration calibration = load_estimates(catalogued);
  const std::string before = to_json_text(calibration, "");
  const LaunchFit fit = fit_launches({}, catalogued.resolved());
  put(fit, calibration);
  CHECK(to_json_text(calibration, "") == before);
  CHECK(launches_text(fit).empty());
}

TEST_CASE("pinned terms do not move, and one group has no error of its own") {
  const ResolvedDevice device = load_device("h200-sxm").resolved();
  Lines lines({.noise = 0}, 6);
  lines.launches();
  std::erase_if(lines.log.samples, [](const Sample& s) {
    return s.variant != "graph" || s.numbers.at("nodes") != 200 || s.numbers.at("parameters") != 8;
  });
  REQUIRE(lines.log.samples.size() == 1);
  const LaunchFit fit = fit_launches(lines.log, device);
  REQUIRE(fit.graph);
  CHECK(fit.graph->per_parameter.value < 1e-14);
  CHECK(fit.graph->once.value < 1e-14);
  CHECK(fit.graph->each.value == Approx(lines.log.samples[0].time.si()).epsilon(1e-3));
  CHECK(fit.graph->error.rows == 0);
}
