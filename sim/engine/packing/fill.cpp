// SPDX-License-Identifier: Apache-2.0
// Places task after task, and tells how much is handed out.
#include "sim/engine/packing/fill.h"

#include <algorithm>

#include "sim/base/random.h"
#include "sim/engine/packing/fill_score.h"

namespace orrery {
namespace {

template <class T>
void shuffle(std::vector<T>& list, RandomStream& random) {
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.below(i)]);
}

// Tasks of one kind score alike, so that a host is scored once for a kind until it changes.
class FillRun {
 public:
  FillRun(const SharedHosts& cluster, const std::vector<SharedTask>& tasks,
          const FillQuestion& question)
      : tasks_(tasks), question_(question), order_(question.seed, 0), ties_(question.seed, 1) {
    for (const SharedHost& host : cluster.hosts) hosts_.push_back(empty_host(host));
    shuffle(hosts_, ties_);
    if (question.rule == FillRule::fragmentation) usual_ = usual_tasks(tasks);
    total_ = cluster.gpus() * whole_gpu;
    number_kinds();
  }

  FillRecord run() {
    std::vector<std::size_t> order(tasks_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    shuffle(order, order_);
    const double most = question_.demand * static_cast<double>(total_);
    for (std::size_t i = 0;; ++i) {
      const std::size_t task = i < order.size() ? order[i] : order_.below(tasks_.size());
      const auto asked = static_cast<double>(asked_ + tasks_[task].total_milli());
      tell_before(asked / static_cast<double>(total_));
      if (asked > most) break;
      if (question_.stop && question_.stop()) {
        record_.stopped = true;
        break;
      }
      asked_ += tasks_[task].total_milli();
      place(task);
    }
    tell_before(2 * question_.demand + 1);
    record_.allocated.push_back(share());
    return record_;
  }

 private:
  double share() const { return static_cast<double>(handed_) / static_cast<double>(total_); }

  // Marks that lie before this demand.
  void tell_before(double demand) {
    while (record_.allocated.size() < question_.marks.size() &&
           question_.marks[record_.allocated.size()] < demand)
      record_.allocated.push_back(share());
  }

  void number_kinds() {
    for (const SharedTask& task : tasks_) {
      const auto found = std::find(kinds_.begin(), kinds_.end(), task);
      kind_of_.push_back(static_cast<std::size_t>(found - kinds_.begin()));
      if (found == kinds_.end()) kinds_.push_back(task);
    }
    scores_.resize(kinds_.size());
    changes_.assign(hosts_.size(), 1);
  }

  const FillScore& score(std::size_t kind, std::size_t host) {
    Known& known = scores_[kind][host];
    if (known.change != changes_[host]) {
      known.score = fill_score(question_.rule, hosts_[host], kinds_[kind], usual_);
      known.change = changes_[host];
    }
    return known.score;
  }

  void place(std::size_t number) {
    const std::size_t kind = kind_of_[number];
    if (scores_[kind].empty()) scores_[kind].resize(hosts_.size());
    std::int32_t best = -1;
    equal_.clear();
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const std::int32_t points = score(kind, host).points;
      if (points < 0 || points < best) continue;
      if (points > best) equal_.clear();
      best = points;
      equal_.push_back(host);
    }
    if (equal_.empty()) {
      ++record_.refused;
      return;
    }
    const bool draws = question_.rule == FillRule::random;
    const std::size_t host = draws ? equal_[ties_.below(equal_.size())] : equal_.front();
    std::int32_t gpu = score(kind, host).gpu;
    const SharedTask& task = kinds_[kind];
    if (gpu < 0 && task.is_part()) gpu = any_gpu(hosts_[host], task);
    take_task(hosts_[host], task, static_cast<std::size_t>(std::max(0, gpu)));
    handed_ += task.total_milli();
    ++changes_[host];
    ++record_.placed;
  }

  std::int32_t any_gpu(const HostState& host, const SharedTask& task) {
    std::vector<std::int32_t> able;
    for (std::size_t i = 0; i < host.gpu_milli.size(); ++i)
      if (host.gpu_milli[i] >= task.gpu_milli) able.push_back(static_cast<std::int32_t>(i));
    return able[ties_.below(able.size())];
  }

  struct Known {
    std::uint32_t change = 0;  // of the host when it was scored
    FillScore score;
  };
  const std::vector<SharedTask>& tasks_;
  const FillQuestion& question_;
  RandomStream order_, ties_;
  std::vector<HostState> hosts_;
  std::vector<UsualTask> usual_;
  std::vector<SharedTask> kinds_;
  std::vector<std::size_t> kind_of_;        // of each task
  std::vector<std::vector<Known>> scores_;  // by kind, host
  std::vector<std::uint32_t> changes_;      // of each host
  std::vector<std::size_t> equal_;
  std::int64_t total_ = 0, asked_ = 0, handed_ = 0;  // thousandths of accelerators
  FillRecord record_;
};

}  // namespace

FillRecord fill_cluster(const SharedHosts& cluster, const std::vector<SharedTask>& tasks,
                        const FillQuestion& question) {
  return FillRun(cluster, tasks, question).run();
}

}  // namespace orrery
