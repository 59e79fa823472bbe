// SPDX-License-Identifier: Apache-2.0
// Formats events as rows of a CSV.
#include "sim/app/schedule/event_rows.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/app/answer/csv.h"

namespace orrery {
namespace {

constexpr std::size_t most_waiting = std::size_t{1} << 20U;  // bytes

}  // namespace

std::string gpus_text(std::int64_t milli) {
  if (milli % whole_gpu == 0) return fmt::format("{}", milli / whole_gpu);
  return fmt::format("{}", static_cast<double>(milli) / whole_gpu);
}

Json gpus_json(std::int64_t milli) {
  if (milli % whole_gpu == 0) return milli / whole_gpu;
  return static_cast<double>(milli) / whole_gpu;
}

std::int64_t milli_gpus(const FleetEvent& event) {
  return event.milli > 0 ? event.milli : event.gpus * whole_gpu;
}

std::string hosts_text(const FleetEvent& event) {
  const Grants& place = *event.place;
  if (event.milli > 0) return fmt::format("{}:{}", place.front().host, gpus_text(event.milli));
  std::string text;
  for (std::size_t i = 0; i < place.size();) {
    const std::int32_t from = place[i].host, gpus = place[i].gpus;
    std::int32_t to = from + place[i].hosts;
    for (++i; i < place.size() && place[i].host == to && place[i].gpus == gpus; ++i)
      to += place[i].hosts;
    if (!text.empty()) text += ' ';
    text += to - from == 1 ? fmt::format("{}:{}", from, gpus)
                           : fmt::format("{}-{}:{}", from, to - 1, gpus);
  }
  return text;
}

void EventRows::begin(const Scheduled& asked) {
  jobs_ = &asked.jobs;
  file_.write("time_s,event,job,cause,gpus,hosts\n");
}

void EventRows::take(const FleetEvent& event) {
  if (event.kind == FleetEventKind::power) return;  // a curve, of traces
  fmt::format_to(std::back_inserter(rows_), "{}.{:06},{},{},{},{},{}\n", event.at.us / 1'000'000,
                 event.at.us % 1'000'000, fleet_event_text[event.kind],
                 is_of_job(event.kind) ? csv_cell(jobs_->id_of(event.job)) : "",
                 csv_cell(std::string(event.cause)), gpus_text(milli_gpus(event)),
                 event.place != nullptr ? hosts_text(event) : "");
  if (rows_.size() < most_waiting) return;
  file_.write(rows_);
  rows_.clear();
}

void EventRows::finish() {
  file_.write(rows_);
  rows_.clear();
  file_.finish();
}

}  // namespace orrery
