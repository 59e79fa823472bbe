// SPDX-License-Identifier: Apache-2.0
// Predicts a training's step where it is alone and well placed, and what its months are like.
#include "sim/question/schedule/training_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "sim/advise/advisor.h"
#include "sim/base/errors/cannot_exist.h"
#include "sim/engine/jobs/job_run.h"
#include "sim/engine/memory_fit.h"
#include "sim/engine/step/step.h"
#include "sim/outcome/fleet/job_months.h"
#include "sim/outcome/fleet/shared_saves.h"
#include "sim/outcome/host_power.h"
#include "sim/outcome/months/checkpoint_traffic.h"
#include "sim/outcome/months/job.h"
#include "sim/outcome/verdict.h"
#include "sim/question/plan/question.h"
#include "sim/question/schedule/settings.h"
#include "sim/question/settings/settings.h"
#include "workloads/cluster_job/job_cells.h"

namespace orrery {
namespace {

// Of an entry; what else stands there are settings of simulate.
constexpr std::array<std::string_view, 17> own_keys = {
    "id",    "submit",   "tokens",      "steps",  "length", "limit",       "save_interval",
    "queue", "priority", "preemptible", "within", "sizes",  "noise_scale", "deadline",
    "slack", "uses",     "after"};
// One of these says that the layout is given.
constexpr std::array<std::string_view, 6> keys_of_layout = {"tp", "pp", "dp", "cp", "ep", "like"};

JsonValue training_settings(const JsonValue& entry, const SortedJson& cluster) {
  SortedJson settings = SortedJson::object();
  for (const auto& [key, value] : entry.members())
    if (std::find(own_keys.begin(), own_keys.end(), key) == own_keys.end())
      settings[key] = value.raw();
  if (settings.contains("cluster"))
    entry.at("cluster").fail("none: all jobs run on the cluster of the question");
  settings["cluster"] = cluster;
  const JsonValue line = JsonValue::from(std::move(settings), place_of(entry));
  return merge_line(line, SortedJson::object(), {}, SortedJson::object());
}

void check_runs(const JsonValue& settings, const Cluster& cluster, const Stack& stack,
                PrecisionRecipe precision) {
  const Verdict verdict = program_verdict(stack, cluster.device, precision);
  if (verdict.runs) return;
  throw CannotExist({.file = settings.file(), .found = verdict.why, .expected = "one that runs"});
}

Scenario best_scenario(const JsonValue& settings, Catalogues& catalogues, int threads) {
  const Question question = read_question(settings, catalogues);
  for (const PrecisionRecipe precision : question.precisions)
    check_runs(settings, question.cluster,
               catalogue_stack(question.stack_name, question.cluster, question.model, question.job,
                               precision),
               precision);
  const Advice advice = advise(question, {.top = 1,
                                          .threads = threads,
                                          .memory_reserve = read_memory_reserve(settings),
                                          .brief = true});
  if (advice.best.empty())
    throw CannotExist({.file = settings.file(),
                       .found = "no layout of a training fits: " + advice.why,
                       .expected = "more accelerators, or a smaller model"});
  return {.cluster = question.cluster,
          .model = question.model,
          .job = question.job,
          .layout = advice.best.front().layout,
          .stack = advice.stack};
}

Scenario given_scenario(const JsonValue& settings, Catalogues& catalogues) {
  Scenario scenario = read_scenario(settings, catalogues);
  check_runs(settings, scenario.cluster, scenario.stack, scenario.layout.precision);
  const MemoryVerdict memory = memory_fit(scenario.model, scenario.job, scenario.layout,
                                          scenario.stack, step_context(scenario).device);
  if (!verdict_of(memory).exists())
    throw CannotExist({.file = settings.file(),
                       .found = "a training that does not fit: " + verdict_of(memory).why,
                       .expected = "a layout that fits"});
  return scenario;
}

// The last of its steps, and how long they take together.
void read_length(const JsonValue& entry, FleetTraining& out) {
  constexpr std::array<const char*, 3> ways = {"tokens", "steps", "length"};
  std::optional<std::string> given;
  for (const char* way : ways) {
    if (!entry.has(way)) continue;
    if (given) entry.at(way).fail("one of tokens, steps and length");
    given = way;
  }
  if (!given) entry.fail("tokens, steps or length (\"30 day\")", "a training without an end");
  const JsonValue at = entry.at(*given);
  if (*given == "length") {
    out.job.length = read_entry_time(at);
    return;
  }
  const double count = at.number();
  if (!(count >= 1)) at.fail("at least 1");
  const double steps =
      *given == "steps" ? count : std::ceil(count / tokens_per_step(out.scenario.job, 1));
  out.job.length = time_of_steps(at, steps, out.step_ps);
}

// The months of a job that has a store for itself, of which its hosts take what they can.
GoodputCase months_beside(const Cluster& cluster, const ReliabilityProfile& profile, GoodputJob job,
                          const std::optional<StoreRates>& store) {
  BytesPerSecond& own = job.storage.front().bandwidth;
  if (store && store->host) own = *store->host * static_cast<double>(fleet_counts(cluster).hosts);
  GoodputCase months = goodput_case(cluster, profile, job);
  if (!store) return months;
  const BytesPerSecond most = months.tiers.front().bandwidth;
  if (most > store->write) {
    own = store->write;
    months = goodput_case(cluster, profile, job);
  }
  if (CheckpointTier& tier = months.tiers.front(); std::min(most, store->read) != tier.bandwidth)
    tier.read = tier.size / std::min(most, store->read);
  return months;
}

void set_months(const ReliabilityProfile& profile, const std::optional<StoreRates>& store,
                FleetTraining& out) {
  const Scenario& s = out.scenario;
  GoodputCase months = months_beside(s.cluster, profile, *out.months, store);
  for (CheckpointTier& tier : months.tiers) tier.slowed = slowed_by(s, out.months->step, tier.flow);
  const std::int64_t watts = out.work.milliwatts;
  const bool priced = out.work.priced;
  out.work = month_work(months, out.step_ps);
  out.work.milliwatts = watts;
  out.work.priced = priced;
  out.slower = slower_steps(months);
  out.save_interval =
      seconds(static_cast<double>(out.work.save_steps) * static_cast<double>(out.step_ps) * 1e-12);
}

void read_months(const JsonValue& entry, const TrainingCase& with, FleetTraining& out) {
  const Scenario& s = out.scenario;
  GoodputJob job{.step = seconds(static_cast<double>(out.step_ps) * 1e-12),
                 .tokens_per_step = tokens_per_step(s.job, 1),
                 .replicas = s.layout.dp};
  job.tokens = job.tokens_per_step * to_seconds(out.job.length).si() / job.step.si();
  job.checkpoint = checkpoint_bytes(static_cast<double>(count_parameters(s.model).total),
                                    optimizer_cost(s.layout, s.stack, s.model.hidden));
  job.spare_gpus = 0;
  if (const auto interval = entry.find("save_interval")) {
    job.storage.front().interval = interval->quantity<Seconds>();
    if (!(job.storage.front().interval > Seconds{}))
      interval->fail("a time above 0; without it the one that loses least");
  }
  out.months = job;
  set_months(*with.profile, with.store, out);
}

// Where nothing fails saves cost nothing, and count when a job is stopped by another.
void read_saves(const JsonValue& entry, Seconds usual, FleetTraining& out) {
  const auto own = entry.find("save_interval");
  out.save_interval = own ? to_seconds(read_entry_time(*own)) : usual;
  out.work.save_steps = save_steps_of(out.save_interval, out.step_ps);
}

FleetTraining read_on_one_size(const JsonValue& entry, const TrainingCase& with) {
  const auto& [cluster, profile, store, save_interval, catalogues, threads] = with;
  FleetTraining out;
  const JsonValue settings = training_settings(entry, cluster);
  out.searched = std::none_of(keys_of_layout.begin(), keys_of_layout.end(),
                              [&](std::string_view key) { return entry.has(key); });
  out.scenario = out.searched ? best_scenario(settings, catalogues, threads)
                              : given_scenario(settings, catalogues);
  const Scenario& s = out.scenario;
  const StepResult result = step(step_context(s), s.model, s.job, s.layout, s.stack);
  out.step_ps = result.step.ps;
  const double watts = result.energy_per_gpu.si() / to_seconds(result.step).si() +
                       host_power_per_accelerator(s.cluster).si();
  out.work.step_ps = out.step_ps;
  out.work.milliwatts = std::llround(1e3 * watts);
  out.id = entry.at("id").text();
  if (const auto submit = entry.find("submit")) out.job.submit = read_entry_time(*submit);
  out.job.gpus = static_cast<std::int32_t>(s.layout.gpus());
  read_length(entry, out);
  if (profile)
    read_months(entry, with, out);
  else
    read_saves(entry, save_interval, out);
  out.work.priced = true;
  out.job.limit = out.job.length;
  if (const auto limit = entry.find("limit")) {
    out.job.limit = read_entry_time(*limit);
    if (out.job.limit < out.job.length)
      limit->fail(fmt::format("at least the {:.3g} h that it takes alone",
                              to_seconds(out.job.length).si() / 3600));
  }
  return out;
}

// Ascending, each once.
std::set<std::int64_t> read_sizes(const JsonValue& at, std::int64_t asked) {
  std::set<std::int64_t> sizes;
  for (const SortedJson& size : plan_values(at))
    sizes.insert(JsonValue::from(size, at.file()).integer(1, most_scheduled_gpus));
  if (!sizes.contains(asked)) at.fail(fmt::format("sizes with the {} that gpus says", asked));
  return sizes;
}

// The same entry for another number of accelerators. With a noise scale N of the gradient the batch
// B goes with the size, and as much is learnt in steps in proportion to 1 + N / B (McCandlish et
// al., An Empirical Model of Large-Batch Training, 2018, equation 2.7). Without one the batch
// stays.
JsonValue resized(const JsonValue& entry, const FleetTraining& asked, std::int64_t gpus) {
  SortedJson settings = entry.raw();
  for (const char* key : {"sizes", "noise_scale", "tokens", "length", "limit"}) settings.erase(key);
  const std::int64_t steps = steps_of(asked.work, asked.job.length);
  settings["gpus"] = gpus;
  settings["steps"] = steps;
  if (const auto noise = entry.find("noise_scale")) {
    const double tokens = noise->number();
    if (!(tokens > 0 && tokens < 1e15)) noise->fail("tokens above 0");
    const double before = tokens_per_step(asked.scenario.job, 1);
    const std::int64_t batch = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(asked.scenario.job.global_batch) *
                        static_cast<double>(gpus) / asked.job.gpus));
    const double after =
        before * static_cast<double>(batch) / static_cast<double>(asked.scenario.job.global_batch);
    settings["global_batch"] = batch;
    settings["steps"] =
        std::ceil(static_cast<double>(steps) * (1 + tokens / after) / (1 + tokens / before));
  }
  return JsonValue::from(std::move(settings), fmt::format("{}: {} on {} accelerators", entry.file(),
                                                          entry.path(), gpus));
}

// "gpus": 0.5, in thousandths; nothing: whole ones.
std::optional<std::int32_t> part_asked(const JsonValue& entry) {
  const auto gpus = entry.find("gpus");
  if (!gpus || !gpus->is_number()) return std::nullopt;
  const double number = gpus->number();
  if (std::trunc(number) == number) return std::nullopt;
  if (!(number > 0 && number < 1)) gpus->fail("whole GPUs, or a part of one such as 0.5");
  const auto milli = gpu_thousandths(gpus->number());
  if (!milli || *milli == whole_gpu) gpus->fail("whole GPUs, or 0.001 to 0.999 of one");
  return milli;
}

// It is predicted alone on a whole GPU, whose memory it shares with others.
FleetTraining read_on_a_part(const JsonValue& entry, std::int32_t milli, const TrainingCase& with) {
  if (const auto sizes = entry.find("sizes"))
    sizes->fail("nothing beside a part of a GPU, which has one size");
  SortedJson whole = entry.raw();
  whole["gpus"] = 1;
  FleetTraining out = read_on_one_size(JsonValue::from(std::move(whole), place_of(entry)), with);
  const Scenario& s = out.scenario;
  const MemoryVerdict memory =
      memory_fit(s.model, s.job, s.layout, s.stack, step_context(s).device);
  const Bytes most = memory.capacity * (static_cast<double>(milli) / whole_gpu);
  if (memory.needed > most)
    throw CannotExist(
        {.file = entry.file(),
         .path = entry.at("gpus").path(),
         .found = "a training that needs " + to_text(memory.needed),
         .expected = "a part of a GPU with as much memory: this one has " + to_text(most)});
  out.job.milli = static_cast<std::uint16_t>(milli);
  return out;
}

}  // namespace

FleetTraining read_training(const JsonValue& entry, const TrainingCase& with) {
  if (const auto milli = part_asked(entry)) return read_on_a_part(entry, *milli, with);
  FleetTraining out = read_on_one_size(entry, with);
  const auto sizes = entry.find("sizes");
  if (!sizes) {
    if (const auto noise = entry.find("noise_scale")) noise->fail("nothing without sizes");
    return out;
  }
  for (const std::int64_t gpus : read_sizes(*sizes, out.job.gpus))
    if (gpus != out.job.gpus)
      out.sizes.push_back(read_on_one_size(resized(entry, out, gpus), with));
  return out;
}

namespace {

// What a save takes where nobody else saves, and what its saves take of all time.
StoreSaver saver_of(const FleetTraining& training, BytesPerSecond most) {
  const double write = static_cast<double>(training.work.write_ps) * 1e-12;
  if (!(training.save_interval > Seconds{}) || !(write > 0)) return {.most = most};
  const Bytes size = training.months->checkpoint;
  return {.most = std::min(most, size / seconds(write)), .mean = size / training.save_interval};
}

void slow_saves(const ReliabilityProfile& profile, StoreRates store, const StoreSaver& saver,
                BytesPerSecond rate, FleetTraining& training) {
  if (!(rate < saver.most)) return;
  const Seconds write = training.months->checkpoint / rate;
  const Seconds given = training.months->storage.front().interval;
  if (given > Seconds{} && write > given)
    throw Error({.file = "schedule",
                 .path = "jobs." + training.id + ".save_interval",
                 .found = to_text(given),
                 .expected = "at least the " + to_text(write) +
                             " that a save takes beside the others on the store"});
  store.write = rate;
  set_months(profile, store, training);
}

}  // namespace

void share_saves(std::vector<FleetTraining>& trainings, const ReliabilityProfile& profile,
                 const StoreRates& store) {
  std::vector<StoreSaver> savers;
  for (const FleetTraining& training : trainings) savers.push_back(saver_of(training, store.write));
  const std::vector<BytesPerSecond> rates = save_rates(savers, store.write);
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    slow_saves(profile, store, savers[i], rates[i], trainings[i]);
    for (FleetTraining& size : trainings[i].sizes)
      slow_saves(profile, store, saver_of(size, store.write), rates[i], size);
  }
}

}  // namespace orrery
