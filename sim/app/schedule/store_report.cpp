// SPDX-License-Identifier: Apache-2.0
// Writes reads of a shared store, and the load that saves are on it.
#include "sim/app/schedule/store_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/app/schedule/point_names.h"
#include "sim/base/text/words.h"

namespace orrery {
namespace {

// Of what the store takes, in the mean, while all trainings run.
double save_share(const SchedulePoint& p) {
  double rate = 0;
  for (const FleetTraining& training : p.asked.jobs->trainings)
    if (training.months && training.save_interval > Seconds{})
      rate += (training.months->checkpoint / training.save_interval).si();
  return rate / p.asked.store->write.si();
}

// Until a save of some training counts, at most.
Seconds longest_save(const SchedulePoint& p) {
  std::int64_t ps = 0;
  for (const FleetTraining& training : p.asked.jobs->trainings)
    ps = std::max(ps, training.work.save_ps + training.work.write_ps);
  return seconds(static_cast<double>(ps) * 1e-12);
}

Seconds mean_of_reads(const StoreReads& reads, FleetTime sum) {
  return reads.count > 0 ? to_seconds(sum) / static_cast<double>(reads.count) : Seconds{};
}

}  // namespace

void add_store(Document& document, const Scheduled& s) {
  std::vector<std::string> head;
  std::vector<Align> align;
  name_columns(s, head, align);
  for (const char* name :
       {"reads", "at a time", "alone", "took", "longest", "GPU-hours", "saves %", "a save"})
    head.emplace_back(name);
  align.resize(head.size(), Align::right);
  Table table(head, align);
  bool any = false;
  for (const SchedulePoint* p : run_points(s)) {
    if (!p->asked.store) continue;
    any = true;
    const StoreReads& reads = p->record.reads;
    std::vector<std::string> row = name_cells(*p);
    row.push_back(grouped(reads.count));
    row.push_back(grouped(reads.most));
    row.push_back(to_text(mean_of_reads(reads, reads.alone)));
    row.push_back(to_text(mean_of_reads(reads, reads.took)));
    row.push_back(to_text(to_seconds(reads.longest)));
    row.push_back(fmt::format("{:.0f}", gpu_hours(reads.waited)));
    row.push_back(percent_figure(save_share(*p)));
    row.push_back(to_text(longest_save(*p)));
    table.add(row);
  }
  if (!any) return;
  document.heading("The store that all share");
  document.table(table);
  document.note(
      "reads: of states, before first steps; at a time: the most; alone, took: means, as each "
      "would "
      "be alone and as they were; GPU-hours: held for longer than alone. saves %: of what the "
      "store "
      "takes, in the mean, while all trainings run; a save: until the longest counts.");
}

Json store_json(const SchedulePoint& p) {
  if (!p.asked.store) return nullptr;
  const StoreRates& store = *p.asked.store;
  const StoreReads& reads = p.record.reads;
  return {{"read_bytes_per_s", store.read.si()},
          {"write_bytes_per_s", store.write.si()},
          {"host_bytes_per_s", store.host ? Json(store.host->si()) : Json(nullptr)},
          {"reads", reads.count},
          {"most_at_a_time", reads.most},
          {"alone_s", mean_of_reads(reads, reads.alone).si()},
          {"took_s", mean_of_reads(reads, reads.took).si()},
          {"longest_s", to_seconds(reads.longest).si()},
          {"waited_gpu_hours", gpu_hours(reads.waited)},
          {"save_share", save_share(p)},
          {"longest_save_s", longest_save(p).si()}};
}

}  // namespace orrery
