// SPDX-License-Identifier: Apache-2.0
// Knows what the answers of the shipped questions must obey, as a person would check them by hand.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "hw_models/catalog.h"
#include "sim/app/plan/report.h"
#include "sim/base/json/tree.h"
#include "sim/outcome/model_flop.h"
#include "sim/question/plan/question.h"
#include "tests/app/run_binary.h"

using namespace orrery;
using namespace orrery::test;

namespace {

constexpr double day = 86400;

struct Answered {
  PlanFile file;
  PlanResult result;
  std::optional<PlanDetail> detail;
  const PlanChoice& choice(const PlanPoint& p) const { return file.plan.choices[p.choice]; }
  // All points of a cluster, in the order of the question.
  std::vector<PlanPoint> of(const std::string& cluster) const {
    std::vector<PlanPoint> found;
    for (const PlanPoint& p : result.points)
      if (choice(p).question.cluster.name == cluster) found.push_back(p);
    return found;
  }
};

// The sweep alone: what a search of a few seconds adds depends on how long they are here.
Answered answered(const std::string& name, const SortedJson& smaller = {}) {
  Answered a;
  a.file = read_plan(merge_plan_flags(name, smaller.is_null() ? SortedJson::object() : smaller));
  a.result = plan(a.file.plan, {.full_batches = 0});
  if (const auto at = detailed_point(a.result))
    a.detail = plan_detail(a.file.plan, a.result.points[*at], nullptr);
  return a;
}

// What a limit is held against, by hand.
bool meets(const PlanGoal& goal, const PlanPoint& p) {
  const auto within = [](double limit, double needed) { return limit <= 0 || needed <= limit; };
  return p.ends() && within(goal.allowed.si(), p.finish.si()) && within(goal.budget.si(), p.cost) &&
         within(goal.capital.si(), p.capital) && within(goal.power.si(), p.facility_peak) &&
         within(goal.racks, p.racks) && within(goal.square_metres, p.square_metres);
}

void check_point(const PlanChoice& choice, const PlanPoint& p) {
  const Question& q = choice.question;
  const Layout& layout = p.step.best.layout;
  CHECK(layout.gpus() == p.gpus);
  CHECK(q.job.global_batch % (layout.dp * layout.micro_batch) == 0);
  CHECK(p.step.best.peak_memory <= q.cluster.device.resolved().memory_capacity * 0.95);
  CHECK(p.bought >= p.gpus + p.spares);
  CHECK(p.feasible == meets(choice.goal, p));
  // Steps times the time of one, over the share of the time that counts, are the days.
  const auto batch = static_cast<double>(q.job.global_batch * q.job.sequence);
  const double steps = choice.goal.tokens / batch;
  CHECK(p.tokens_per_second == Approx(batch / p.step.best.step_time.si()));
  if (!p.ends()) return;
  CHECK(p.duration.si() == Approx(steps * p.step.best.step_time.si() / p.effective).epsilon(1e-6));
  CHECK(p.finish.si() == Approx(p.duration.si() + choice.terms.wait.si()));
  // Energy is mean power times time, and the mean lies below what must be provided.
  CHECK(p.energy == Approx(p.facility_mean * p.duration.si()).epsilon(1e-6));
  CHECK(p.facility_mean < p.facility_peak);
  CHECK(p.dollars_per_million_tokens == Approx(p.cost / (choice.goal.tokens / 1e6)).epsilon(1e-6));
  // Utilisation: model FLOP of the step over what the machines could do in it.
  const double peak =
      q.cluster.device.tensor_rate[static_cast<std::size_t>(Format::bf16)].get().si();
  const double flop = model_flop_per_token(q.model, q.job);
  CHECK(p.step.mfu == Approx(flop * p.tokens_per_second / (peak * static_cast<double>(p.gpus))));
  if (choice.goal.flop.si() > 0) CHECK(choice.goal.tokens * flop == Approx(choice.goal.flop.si()));
}

void check_detail(const Answered& a) {
  REQUIRE(a.detail);
  const PlanDetail& d = *a.detail;
  const PlanPoint& p = a.result.points[*detailed_point(a.result)];
  REQUIRE(d.bill.job);
  double sum = 0;
  for (const JobLine& line : d.bill.job->lines) sum += line.amount.value.si();
  CHECK(sum == Approx(p.cost).epsilon(1e-6));
  CHECK(d.bill.job->cost.low.si() <= p.cost);
  CHECK(d.bill.job->cost.high.si() >= p.cost);
  double bought = 0;
  for (const auto& group : d.bill.capital_by_group) bought += group.value.si();
  CHECK(bought == Approx(p.capital).margin(1));
  CHECK(std::accumulate(d.goodput.shares.begin(), d.goodput.shares.end(), 0.0) == Approx(1));
  CHECK(d.low <= p.duration);
  CHECK(d.high >= p.duration);
  CHECK(d.prediction.memory.fits);
  CHECK(d.prediction.step_time.si() == Approx(p.step.best.step_time.si()).epsilon(1e-9));
  CHECK(!d.flags.text.empty());
}

// What every question's answer obeys.
void check_all(const Answered& a) {
  for (const PlanPoint& p : a.result.points) {
    CAPTURE(point_name(a.file, p), p.step.why_not);
    REQUIRE(p.step.fits);
    check_point(a.choice(p), p);
  }
  if (a.result.best) {
    const PlanPoint& best = a.result.points[*a.result.best];
    const PlanObjective objective = a.choice(best).goal.objective;
    CHECK(meets(a.choice(best).goal, best));
    for (const PlanPoint& p : a.result.points)
      if (meets(a.choice(p).goal, p))
        CHECK(plan_score(best, objective) <= plan_score(p, objective));
  }
  for (std::size_t i = 1; i < a.result.front.size(); ++i) {
    CHECK(a.result.front[i - 1].finish < a.result.front[i].finish);
    CHECK(a.result.front[i - 1].cost > a.result.front[i].cost);
  }
  check_detail(a);
}

}  // namespace

TEST_CASE("shipped questions are valid and listed") {
  const std::vector<std::string> names = catalog_names("workloads/catalog/questions");
  CHECK(names.size() >= 8);
  const std::string listed = run("catalog list question").out;
  for (const std::string& name : names) {
    CAPTURE(name);
    const PlanFile file = read_plan(load_plan_file(name));
    CHECK(!file.title.empty());
    CHECK(!file.plan.choices.empty());
    CHECK(listed.find(name) != std::string::npos);
  }
}

TEST_CASE("which accelerators for Llama 3.1 405B") {
  const Answered a = answered("llama-405b-which-gpus");
  check_all(a);
  REQUIRE(a.result.best);
  for (const char* cluster : {"dgx-h100", "dgx-h200", "gb200-nvl72", "gb300-nvl72"}) {
    // Twice the machines are sooner and, since they are used less well, dearer.
    const auto points = a.of(cluster);
    REQUIRE(points.size() == 4);
    for (std::size_t i = 1; i < points.size(); ++i) {
      CHECK(points[i].finish < points[i - 1].finish);
      CHECK(points[i].finish * 2.0 > points[i - 1].finish);
      // Racks of 72 fill better at some counts than at others.
      const bool hosts_of_eight = std::string_view(cluster).find("nvl72") == std::string_view::npos;
      CHECK(points[i].cost > (hosts_of_eight ? 1.0 : 0.9) * points[i - 1].cost);
      CHECK(points[i].effective < points[i - 1].effective);
    }
  }
  // Meta's model card counts 30.84 million hours of H100 for the run, stages after it included.
  const PlanPoint meta = a.of("dgx-h100").back();
  REQUIRE(meta.gpus == 16384);
  const double hours = meta.duration.si() / 3600 * 16384;
  CHECK(hours > 0.65 * 30.84e6);
  CHECK(hours < 30.84e6);
}

TEST_CASE("faster kernels gain less than their factor") {
  const Answered a = answered("faster-kernels");
  check_all(a);
  const auto& points = a.result.points;
  REQUIRE(points.size() == 4);
  const auto gain = [&](std::size_t i) {
    return points[0].step.best.step_time / points[i].step.best.step_time;
  };
  CHECK(gain(1) > 1.03);
  CHECK(gain(1) < 1.15);
  CHECK(gain(2) > 1);
  CHECK(gain(2) < 1.5);
  CHECK(gain(3) > std::max(gain(1), gain(2)));
  CHECK(gain(3) < 1.15 * 1.5);
}

TEST_CASE("Llama 3.1 70B by a date, rented") {
  const Answered a = answered("llama-70b-by-deadline");
  check_all(a);
  REQUIRE(a.result.best);
  for (std::size_t i = 0; i < a.result.points.size(); ++i) {
    const PlanPoint& p = a.result.points[i];
    const PlanChoice& choice = a.choice(p);
    // Rent: machines times hours times the price of an hour.
    const double hour = choice.question.cluster.device.rental.get().si() * 3600;
    const double rent = static_cast<double>(p.bought) * p.duration.si() / 3600 * hour;
    CHECK(p.cost >= rent * 0.999999);
    CHECK(p.cost < 1.1 * rent);  // storage of checkpoints beside it
    if (i == *a.result.best)
      CHECK(a.detail->bill.job->lines.front().amount.value.si() == Approx(rent).epsilon(1e-6));
    CHECK(p.capital == 0);
    // 2027-01-04 to 2027-06-30.
    CHECK(p.finish.si() <= 177 * day);
    for (const PlanPoint& t : a.result.tried[i])
      if (t.step.fits && meets(choice.goal, t)) CHECK(p.cost <= t.cost);
  }
}

TEST_CASE("more megawatts never train fewer tokens a second") {
  const Answered a = answered("site-of-50-megawatts", {{"cluster", {"dgx-h100", "gb300-nvl72"}},
                                                       {"power", {"10 MW", "20 MW"}}});
  check_all(a);
  for (const char* cluster : {"dgx-h100", "gb300-nvl72"}) {
    const auto points = a.of(cluster);
    REQUIRE(points.size() == 2);
    for (const PlanPoint& p : points) {
      const double allowed = a.choice(p).goal.power.si();
      CHECK(p.facility_peak <= allowed);
      CHECK(p.facility_peak > 0.5 * allowed);
    }
    CHECK(points[1].tokens_per_second * points[1].effective >=
          points[0].tokens_per_second * points[0].effective);
  }
}

TEST_CASE("a mixture of experts of 100T ends where failures are dealt with") {
  const Answered a = answered("100t-moe", {{"gpus", {131072, 1048576}}});
  check_all(a);
  REQUIRE(a.result.best);
  // The note's compute: 50T tokens through a trillion active parameters.
  const PlanChoice& first = a.file.plan.choices.front();
  CHECK(first.goal.tokens * model_flop_per_token(first.question.model, first.question.job) ==
        Approx(3e26).epsilon(0.15));
  std::vector<PlanStall> stalls;
  for (const PlanPoint& p : a.result.points) {
    const auto stall = plan_stall(a.file.plan, p);
    CHECK(stall.has_value() == !p.ends());
    if (!stall) continue;
    CHECK(a.choice(p).terms.remedy.empty());
    CHECK(p.gpus == 1048576);
    CHECK_FALSE(p.feasible);
    CHECK(stall->between_failures < stall->recovery);
    REQUIRE(!stall->ways.empty());
    CHECK(stall->ways.front().effective <= stall->ways.back().effective);
    stalls.push_back(*stall);
  }
  CHECK(stalls.size() == 2);
  // One site holds the small machine: the two names are one, the large ones are not.
  const auto whole = a.of("gb300-4plane"), sites = a.of("gb300-sites");
  REQUIRE(whole.size() == sites.size());
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i].gpus == 131072) CHECK(same_machine(whole[i], sites[i]));
  const std::string text = plan_document(a.file, a.result, a.detail).text();
  for (const char* part : {"never end", "elastic data parallelism", "never ends",
                           "The same to within 1% in time, money, energy and power",
                           "One site of gb300-sites holds 262,144", "To start it with", "It fits"})
    CHECK(text.find(part) != std::string::npos);
  CHECK(text.find("costs 0% less") == std::string::npos);
}

TEST_CASE("a dense 100T in a year needs more than machines that do not fail") {
  const Answered a = answered("100t-dense");
  check_all(a);
  CHECK_FALSE(a.result.best);
  REQUIRE(a.detail->need);
  const PlanNeed& need = *a.detail->need;
  const PlanPoint& p = a.result.points[*detailed_point(a.result)];
  CHECK(need.allowed.si() == Approx(365 * day));
  CHECK(need.undisturbed.si() == Approx(p.duration.si() * p.effective));
  // No faster than all FLOP at the peak of the fastest format that it uses.
  const auto& rate = a.choice(p).question.cluster.device.tensor_rate;
  const double peak = rate[static_cast<std::size_t>(Format::fp4)].get().si();
  CHECK(need.undisturbed.si() > 1e29 / (peak * static_cast<double>(p.gpus)));
  REQUIRE(need.ways.size() > 1);
  for (std::size_t i = 0; i < need.ways.size(); ++i) {
    const PlanNeed::Way& way = need.ways[i];
    CHECK(way.faster * way.effective * need.allowed.si() == Approx(need.undisturbed.si()));
    if (i == 0) continue;
    CHECK(way.effective > need.ways[i - 1].effective);
    CHECK(way.losses.failures < need.ways[i - 1].losses.failures);
  }
  CHECK(need.ways.front().faster == Approx(p.duration / need.allowed));
  const std::string text = plan_document(a.file, a.result, a.detail).text();
  for (const char* part : {"What it would take to end in 365 days", "10^29 FLOP", "rarer"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("fewer uplinks cost less and are never faster") {
  const Answered a = answered("which-network");
  check_all(a);
  const auto& points = a.result.points;  // three fabrics by three ratios
  REQUIRE(points.size() == 9);
  for (std::size_t i = 0; i < 9; ++i) {
    if (i % 3 == 0) continue;
    CHECK(points[i].step.best.step_time >= points[i - 1].step.best.step_time);
    CHECK(points[i].capital < points[i - 1].capital);
    CHECK(points[i].facility_peak < points[i - 1].facility_peak);
  }
  CHECK(points[3].step.best.step_time < points[0].step.best.step_time);  // 800 against 400 Gbit/s
}

TEST_CASE("budgets of compute: each has its answer, and one that waits wins when it is large") {
  const Answered a = answered("compute-budgets");
  check_all(a);
  const auto answers = job_answers(a.file, a.result);
  REQUIRE(answers.size() == 4);
  double before = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    REQUIRE(answers[i]);
    const PlanPoint& p = a.result.points[*answers[i]];
    CHECK(a.choice(p).goal.flop.si() == Approx(1e26 * std::pow(10, i)));
    CHECK(p.finish.si() > before);
    before = p.finish.si();
    for (const PlanPoint& q : a.result.points)
      if (same_job(a.choice(p), a.choice(q))) CHECK(p.finish <= q.finish);
  }
  const auto cluster = [&](std::size_t i) {
    return a.choice(a.result.points[*answers[i]]).question.cluster.name;
  };
  CHECK(cluster(0) == "gb300-4plane");
  CHECK(cluster(3) == "vr200-nvl72");
  for (const PlanPoint& p : a.of("vr200-nvl72")) {
    CHECK(a.choice(p).terms.wait.si() > 100 * day);
    CHECK(p.finish.si() > p.duration.si());
  }
  CHECK(plan_document(a.file, a.result, a.detail).text().find("the best for its job") !=
        std::string::npos);
}
