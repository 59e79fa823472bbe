// SPDX-License-Identifier: Apache-2.0
// Asks the advisor about every published job, and prints how its layout stands to what was run.
#include "sim/validate/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <tuple>

#include "sim/base/parallel.h"
#include "sim/base/statistics.h"
#include "sim/base/text/enum_names.h"
#include "sim/explain/ranking.h"
#include "sim/outcome/simulate.h"
#include "sim/paper/tables.h"
#include "sim/validate/rows/row_words.h"
#include "sim/validate/score/choices.h"
#include "sim/validate/score/predict.h"
#include "sim/validate/score/ranking.h"

namespace orrery {
namespace {

// Shapes that the advisor lists: deep enough to meet what people ran.
constexpr int listed_shapes = 40;

using Rows = std::vector<const ScoredRow*>;

// Training jobs alone.
std::vector<Rows> jobs_of(const std::vector<ScoredRow>& rows) {
  std::vector<Rows> jobs = published_jobs(rows);
  std::erase_if(jobs, [](const Rows& job) { return !is_training(job.front()->row->job.task); });
  return jobs;
}

double measured_speed(const ScoredRow& s) { return *s.row->measured.tokens_per_second_per_gpu; }

const ScoredRow* with_decisions(const Rows& rows, const Layout& layout) {
  for (const ScoredRow* s : rows)
    if (same_decisions(s->row->layout, layout)) return s;
  return nullptr;
}

void compare(AdvisedJob& job, const PreparedRow& r, const ModelError& error) {
  const Layout& advised = job.advised->layout;
  job.gain =
      job.advised->tokens_per_second_per_gpu / job.published->prediction.tokens_per_second_per_gpu -
      1;
  job.low = job.high = job.gain;
  if (job.same) return;
  Scenario scenario = row_scenario(r);
  scenario.layout = advised;
  const Prediction prediction = simulate(scenario, {.model_error = &error});
  const Ranking ranking = rank_contenders(
      scenario, prediction, {{advised, r.stack}, {r.layout, r.stack}}, Objective::time);
  job.low = ranking.rivals.front().low;
  job.high = ranking.rivals.front().high;
}

// What no row tells stays as the stack has it.
SearchLimits told_alone() {
  SearchLimits limits;
  limits.offload = Offload{};
  limits.bucket = Bytes(0);
  limits.rank_order = RankOrder();
  limits.per_domain = 0;
  return limits;
}

AdvisedJob advise_job(const Rows& rows, const ModelError& error) {
  AdvisedJob job{.published = *std::max_element(rows.begin(), rows.end(),
                                                [](const auto* a, const auto* b) {
                                                  return measured_speed(*a) < measured_speed(*b);
                                                }),
                 .measured = rows.size()};
  const PreparedRow& r = *job.published->row;
  const Advice advice = advise(
      {.cluster = r.cluster->cluster,
       .model = r.model,
       .job = r.job,
       .stack_name = r.release,
       .limits = told_alone(),
       .precisions = {r.layout.precision},
       .optimizers = {r.layout.optimizer}},
      {.top = listed_shapes, .threads = 1, .memory_reserve = usual_memory_reserve, .brief = true});
  if (advice.best.empty()) return job;
  job.advised = advice.best.front();
  job.same = same_decisions(job.advised->layout, r.layout);
  for (std::size_t i = 0; i < advice.best.size() && job.run == nullptr; ++i) {
    job.run = with_decisions(rows, advice.best[i].layout);
    job.place = i;
  }
  compare(job, r, error);
  return job;
}

// In the order of the table's columns.
enum class Verdict : std::uint8_t { same, run, tied, gain, cannot_tell, behind, nothing };
constexpr int verdict_count = enumerator_count<Verdict>();

Verdict verdict(const AdvisedJob& job) {
  if (!job.advised) return Verdict::nothing;
  if (job.same) return Verdict::same;
  if (job.measured_gain()) return Verdict::run;
  if (job.gain < -rerun_spread) return Verdict::behind;
  if (job.gain <= rerun_spread) return Verdict::tied;
  return job.low > 0 ? Verdict::gain : Verdict::cannot_tell;
}

std::string verdict_text(const AdvisedJob& job) {
  switch (verdict(job)) {
    case Verdict::nothing:
      return "nothing fits";
    case Verdict::same:
      return "the same";
    case Verdict::run:
      return fmt::format("run: {:+.1f}%", 100 * *job.measured_gain());
    case Verdict::tied:
      return "equal";
    case Verdict::gain:
      return "not run";
    case Verdict::cannot_tell:
      return "cannot tell";
    case Verdict::behind:
      return "behind";
  }
  return "";
}

struct Counts {
  std::size_t jobs = 0, slower = 0;
  std::array<std::size_t, verdict_count> of{};  // by verdict
  std::vector<double> gains;
  void add(const AdvisedJob& job) {
    ++jobs;
    ++of[static_cast<std::size_t>(verdict(job))];
    if (verdict(job) == Verdict::run && *job.measured_gain() < -rerun_spread) ++slower;
    gains.push_back(job.gain);
  }
  std::vector<std::string> cells(const std::string& name) const {
    const auto text = [](std::size_t n) { return n == 0 ? std::string() : fmt::to_string(n); };
    std::vector<std::string> cells = {name, fmt::to_string(jobs)};
    for (int v = 0; v < verdict_count; ++v) {
      cells.push_back(text(of[static_cast<std::size_t>(v)]));
      if (static_cast<Verdict>(v) == Verdict::run) cells.push_back(text(slower));
    }
    cells.push_back(fmt::format("{:.1f}", gains.empty() ? 0 : 100 * median(gains)));
    return cells;
  }
};

std::string counts_text(const std::vector<AdvisedJob>& jobs) {
  using enum Align;
  Table table({"source", "jobs", "same", "run", "slower", "equal", "faster", "unsure", "behind",
               "no fit", "gain%"},
              {left, right, right, right, right, right, right, right, right, right, right});
  std::vector<std::pair<std::string, Counts>> sources;
  Counts all;
  for (const AdvisedJob& job : jobs) {
    const std::string& name = job.published->row->source;
    const auto at = std::find_if(sources.begin(), sources.end(),
                                 [&](const auto& s) { return s.first == name; });
    Counts& counts = at != sources.end() ? at->second : sources.emplace_back(name, Counts{}).second;
    counts.add(job);
    all.add(job);
  }
  for (const auto& [name, counts] : sources) table.add(counts.cells(name));
  table.add(all.cells("all"));
  return table.text();
}

std::string job_text(const AdvisedJob& job) {
  const PreparedRow& r = *job.published->row;
  std::string text =
      fmt::format("{} {} on {} {}, batch {} of {}, {}, {}: published {}", r.id, r.model.name,
                  r.layout.gpus(), r.gpu, r.job.global_batch, r.job.sequence,
                  to_text(r.layout.precision), r.release, to_text(r.layout));
  if (!job.advised) return text + "; nothing fits with 5% of the memory left free";
  if (job.same) return text + "; advised the same";
  text += fmt::format("; advised {}, predicted {:+.1f}% ({:+.1f} to {:+.1f}%): {}",
                      to_text(job.advised->layout), 100 * job.gain, 100 * job.low, 100 * job.high,
                      verdict_text(job));
  if (job.run != nullptr && !job.measured_gain())
    text += fmt::format("; of its list the first that was run is number {}, {}, measured {:+.1f}%",
                        job.place + 1, job.run->row->id,
                        100 * (measured_speed(*job.run) / measured_speed(*job.published) - 1));
  return text;
}

}  // namespace

std::optional<double> AdvisedJob::measured_gain() const {
  if (run == nullptr || place != 0) return std::nullopt;
  return measured_speed(*run) / measured_speed(*published) - 1;
}

bool same_decisions(const Layout& a, const Layout& b) {
  const auto decisions = [](const Layout& l) {
    const bool piped = l.pp > 1;
    const RecomputeChoice again = l.recompute_choice();
    return std::tuple(l.tp, l.pp, l.dp, l.cp, l.ep, l.etp, l.micro_batch, piped ? l.vpp : 1,
                      piped ? l.schedule : Schedule::one_f_one_b, l.tp > 1 && l.sequence_parallel,
                      l.zero_stage == 3, to_text(again), l.recompute_layers);
  };
  return decisions(a) == decisions(b);
}

std::vector<AdvisedJob> advise_published(const std::vector<ScoredRow>& rows,
                                         const ModelError& error, int threads, bool quiet) {
  const std::vector<Rows> jobs = jobs_of(rows);
  std::vector<AdvisedJob> all(jobs.size());
  std::atomic<std::size_t> done{0};
  parallel_for(jobs.size(), threads, [&](std::size_t i) {
    all[i] = advise_job(jobs[i], error);
    constexpr std::size_t step = 20;
    const std::size_t count = ++done;
    if (!quiet && count % step == 0)
      fmt::print(stderr, "{} of {} jobs advised\n", count, jobs.size());
  });
  return all;
}

std::string advice_text(const std::vector<AdvisedJob>& jobs) {
  if (jobs.empty()) return "No published training job with a whole layout among the rows.\n";
  std::string text = wrap(
      "The advisor's own layout against the fastest that was published, job by job: the same; "
      "another that was run too (slower: measured over 2% slower); equal within 2% as "
      "predicted; not run, and predicted to be faster over the whole 90% range; not sure; "
      "behind, which means that the grid lacks the published layout or keeps 5% of the memory "
      "free where the run did not; nothing fits. gain: median, as predicted.",
      page_width, "", "");
  text += counts_text(jobs) + "\n";
  for (const AdvisedJob& job : jobs) text += wrap(job_text(job), page_width, "  ", "    ");
  return text;
}

}  // namespace orrery
