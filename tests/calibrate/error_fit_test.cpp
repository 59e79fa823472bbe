// SPDX-License-Identifier: Apache-2.0
// Tests that ranges made of blind residuals cover as often as they say, wherever they come from.
#include "sim/calibrate/steps/error_fit.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.h"

namespace orrery {
namespace {

double uniform(RandomStream& random) {
  return (static_cast<double>(random.below(1 << 24)) + 0.5) / (1 << 24);
}

double normal(RandomStream& random) {
  return std::sqrt(-2 * std::log(uniform(random))) * std::cos(6.283185307 * uniform(random));
}

struct Kind {
  const char* stack;
  const char* kind;
  double bias, spread;
};
constexpr Kind kinds[] = {
    {"one", "dense", 0.02, 0.04}, {"two", "dense", -0.05, 0.08}, {"two", "experts", 0.0, 0.25}};

// Residuals of a few sources of each kind, with some that are far off.
std::vector<BlindResidual> draw(std::uint64_t seed, std::size_t rows_of_a_source) {
  RandomStream random(seed, 0);
  std::vector<BlindResidual> out;
  int row = 0;
  for (const Kind& kind : kinds)
    for (const char* source : {"A", "B", "C"})
      for (std::size_t i = 0; i < rows_of_a_source; ++i) {
        BlindResidual r;
        r.run = {.stack = kind.stack,
                 .kind = kind.kind,
                 .architecture = "hopper",
                 .device = "h100-sxm",
                 .precision = "bf16",
                 .gpus = 64};
        r.source = std::string(source) + kind.stack + kind.kind;
        r.cell = r.source + ", H100";
        r.twin = std::to_string(row++);
        const double far = random.below(20) == 0 ? 3 : 1;
        r.log_error = kind.bias + far * kind.spread * normal(random);
        r.stated.below.parameters = r.stated.above.parameters = 0.03;
        out.push_back(r);
      }
  return out;
}

TEST_CASE("runs of stand-ins have regions of their own and leave the others as they are") {
  const auto own = draw(1, 20);
  auto all = own;
  for (BlindResidual r : own) {
    r.run.program = "another";
    r.log_error *= 5;
    all.push_back(r);
  }
  const ModelError without = fit_model_error(own, {.threads = 1});
  const ModelError error = fit_model_error(all, {.threads = 1});
  CHECK(error.whole.above == without.whole.above);
  for (const auto& [name, region] : without.regions) {
    INFO(name);
    CHECK(error.regions.at(name).above == region.above);
    CHECK(error.regions.at(name).rows == region.rows);
  }
  CHECK(error.regions.size() == without.regions.size() + 3);  // of all, dense and experts
  CHECK(error.regions.at("stand-in").above > 2 * without.whole.above);
  // Models that no script names are apart in the same way.
  for (std::size_t i = own.size(); i < all.size(); ++i) {
    all[i].run.program = "";
    all[i].run.unscripted = true;
  }
  const ModelError unscripted = fit_model_error(all, {.threads = 1});
  CHECK(unscripted.regions.at("no script").above == error.regions.at("stand-in").above);
  CHECK(unscripted.whole.above == without.whole.above);
  // Where there are no others, they are all that is known.
  std::vector<BlindResidual> alone(all.begin() + static_cast<std::ptrdiff_t>(own.size()),
                                   all.end());
  CHECK(fit_model_error(alone, {.threads = 1}).whole.above > 2 * without.whole.above);
}

TEST_CASE("ranges cover nine of ten rows that they were not made of, in every region") {
  ModelError error = fit_model_error(draw(1, 60), {.threads = 1, .regions = measured_regions});
  for (const BlindResidual& r : draw(1, 60)) error.seen.families.insert(family_of(r.run));
  const auto fresh = draw(2, 400);
  for (const Kind& kind : kinds) {
    int rows = 0, covered = 0;
    double width = 0;
    for (const BlindResidual& r : fresh) {
      if (r.run.stack != kind.stack || r.run.kind != kind.kind) continue;
      const RangeScore score = score_range(r, error);
      ++rows;
      covered += score.covered ? 1 : 0;
      width += score.width;
    }
    INFO(kind.stack << " " << kind.kind);
    CHECK(covered > 0.85 * rows);
    CHECK(covered < 0.95 * rows);
    CHECK(width / rows < 5.5 * kind.spread);
  }
}

TEST_CASE("runs of one kind have one region, of whatever stack, unless another is asked for") {
  const ModelError error = fit_model_error(draw(1, 60), {.threads = 1});
  CHECK(error.regions.size() == 2);
  CHECK((error.regions.contains("dense") && error.regions.contains("experts")));
  const ModelError measured =
      fit_model_error(draw(1, 60), {.threads = 1, .regions = measured_regions});
  CHECK(measured.regions.contains("two, experts, hopper, family measured"));
  CHECK(measured.regions.at("two, dense, family measured").above >
        measured.regions.at("one, dense, family measured").above);
}

TEST_CASE("stated ranges count by as much as makes ranges shortest that hold") {
  auto residuals = draw(9, 60);
  // What is stated tells which runs are far off.
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    BlindResidual& r = residuals[i];
    const double wide = i % 2 == 0 ? 0.2 : 0.02;
    r.stated.below.parameters = r.stated.above.parameters = wide;
    r.log_error = (i % 4 < 2 ? 1 : -1) * 0.95 * wide;
  }
  const ModelError error = fit_model_error(residuals, {.threads = 1});
  CHECK(error.stated_share > 0.5);
  CHECK(error.new_share == error.stated_share);
  // It tells the opposite.
  for (std::size_t i = 0; i < residuals.size(); ++i)
    residuals[i].stated.below.parameters = residuals[i].stated.above.parameters =
        i % 2 == 0 ? 0.02 : 0.2;
  CHECK(fit_model_error(residuals, {.threads = 1}).stated_share < 0.5);
}

TEST_CASE("a range leans to the side on which runs were off") {
  auto residuals = draw(3, 60);
  for (BlindResidual& r : residuals) r.log_error = std::abs(r.log_error) + 0.05;
  const ModelError error = fit_model_error(residuals, {.threads = 1});
  CHECK(error.whole.above > error.whole.below);
}

TEST_CASE("a region of few rows takes most of its width from the wider one") {
  auto residuals = draw(4, 60);
  BlindResidual lone = residuals.front();
  lone.run.stack = "three";
  lone.source = "D";
  lone.log_error = 0;
  residuals.push_back(lone);
  const ModelError error = fit_model_error(residuals, {.threads = 1, .regions = measured_regions});
  const ErrorRegion& own = error.regions.at("three, dense, hopper, family measured");
  const ErrorRegion& wide = error.regions.at("dense, family measured");
  CHECK(own.rows == 1);
  CHECK(own.above > 0.7 * wide.above);
  const RunKind four = {.stack = "four", .kind = "dense", .architecture = "hopper"};
  CHECK(error.region(measured_regions(four)).above == wide.above);
}

TEST_CASE("runs that are alike tell how much runs vary") {
  auto residuals = draw(5, 40);
  CHECK(fit_model_error(residuals, {.threads = 1}).run_to_run == 0);
  RandomStream random(6, 0);
  for (std::size_t i = 0; i + 1 < residuals.size(); i += 2) {
    residuals[i + 1].twin = residuals[i].twin;
    residuals[i + 1].log_error = residuals[i].log_error + 0.02 * normal(random);
  }
  // Their difference has a deviation of 0.02, each of them 0.02 / sqrt(2).
  const double spread = fit_model_error(residuals, {.threads = 1}).run_to_run;
  CHECK(spread > 0.5 * 1.645 * 0.0141);
  CHECK(spread < 1.6 * 1.645 * 0.0141);
}

TEST_CASE("what was seen is what the residuals are of") {
  auto residuals = draw(7, 30);
  residuals.back().run.device = "b200-sxm";
  residuals.back().run.gpus = 4096;
  const ModelError error = fit_model_error(residuals, {.threads = 1});
  CHECK(error.seen.devices == std::set<std::string>{"b200-sxm", "h100-sxm"});
  CHECK(error.seen.most_gpus == 4096);
  CHECK(error.seen.stacks.contains("two"));
}

// With a trait between 0 and `most`, and errors that grow by exp(slope * trait). Memory is filled
// by chance, which they do not depend on.
std::vector<BlindResidual> growing(std::vector<BlindResidual> residuals, std::uint64_t seed,
                                   double RunKind::*trait, double most, double slope) {
  RandomStream random(seed, 0);
  for (BlindResidual& r : residuals) {
    r.run.*trait = most * uniform(random);
    r.run.filled = 0.8 + 0.2 * uniform(random);
    r.log_error *= std::exp(slope * (r.run.*trait));
    r.stated = {};
  }
  return residuals;
}

TEST_CASE("errors that grow with exposed communication make ranges that grow with it") {
  const auto exposed = [](std::vector<BlindResidual> residuals, std::uint64_t seed) {
    return growing(std::move(residuals), seed, &RunKind::exposed, 0.4, 4);
  };
  const ModelError error = fit_model_error(exposed(draw(8, 200), 9), {.threads = 1});
  CHECK(error.difficulty.exposed.slope > 2.5);
  CHECK(error.difficulty.exposed.slope < 5.5);
  CHECK(error.difficulty.near_limit.slope < 0.5);
  // Easy and hard rows are covered alike, which one width for both would not do.
  int rows[2] = {}, covered[2] = {};
  for (const BlindResidual& r : exposed(draw(10, 400), 11)) {
    const int hard = r.run.exposed > 0.2 ? 1 : 0;
    ++rows[hard];
    covered[hard] += score_range(r, error).covered ? 1 : 0;
  }
  for (const int hard : {0, 1}) {
    CHECK(covered[hard] > 0.85 * rows[hard]);
    CHECK(covered[hard] < 0.95 * rows[hard]);
  }
}

TEST_CASE("errors that grow with waiting make ranges that grow with it") {
  const ModelError error =
      fit_model_error(growing(draw(8, 200), 9, &RunKind::waits, 1, 1.5), {.threads = 1});
  CHECK(error.difficulty.waits.slope > 1);
  CHECK(error.difficulty.waits.slope < 2);
  CHECK(error.difficulty.waits.centre == Approx(0.5).margin(0.1));
  CHECK(error.difficulty.exposed.slope == 0);  // none of them has any
}

TEST_CASE("errors that do not depend on a trait leave ranges alone") {
  auto residuals = draw(12, 200);
  RandomStream random(13, 0);
  for (BlindResidual& r : residuals) r.run.exposed = 0.4 * uniform(random);
  CHECK(fit_model_error(residuals, {.threads = 1}).difficulty.exposed.slope < 0.7);
}

TEST_CASE("a row on what no residual is of gets the width of leaving it") {
  auto residuals = draw(14, 60);
  for (BlindResidual& r : residuals)
    if (r.run.kind == std::string("experts")) r.run.stack = "three";
  const ModelError error = fit_model_error(residuals, {.threads = 1});
  REQUIRE(error.unseen.stack > 0);
  BlindResidual known = residuals.front(), foreign = known;
  known.run.architecture = "volta";  // whose regions are those of another stack's, but for the name
  foreign.run.stack = "four";
  ModelError flat = error;
  flat.regions.clear();
  CHECK(score_range(foreign, flat).width > score_range(known, flat).width);
}

}  // namespace
}  // namespace orrery
