// SPDX-License-Identifier: Apache-2.0
// Knows which accelerators are held by jobs that ask for parts of one, and what room each has left.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "sim/engine/packing/fragment_table.h"
#include "topologies/slots.h"
#include "workloads/cluster_job/cluster_job.h"

namespace orrery {

// A job on a part of an accelerator.
struct GpuPart {
  std::uint32_t job = 0;
  std::int32_t milli = 0;  // thousandths of it
};

// A slot of a host.
inline HostGrant one_gpu_on(std::int32_t host) { return {.host = host, .hosts = 1, .gpus = 1}; }

struct SharedGpu {
  std::int32_t host = 0;
  std::int32_t room = whole_gpu;    // thousandths that nobody asked for
  std::vector<GpuPart> parts = {};  // in the order in which they came
};

// An accelerator is opened for the first part on it and holds a slot of its host until the last one
// has left. Openings are numbered, each once, so that a copy knows them by the same numbers.
class SharedGpus {
 public:
  // `share`: parts may join others; else each has an accelerator of its own. `watched`: somebody
  // takes what changed.
  SharedGpus(bool share, bool watched) : share_(share), watched_(watched) {}
  bool share() const { return share_; }
  // Of all open ones, thousandths that nobody asked for.
  std::int64_t unshared() const { return unshared_; }
  // Some open one has room for a part; its host may be out.
  bool has_room(std::int32_t milli) const {
    return by_room_.lower_bound({milli, INT32_MIN, 0}) != by_room_.end();
  }
  // The one that a part joins, on a host that is in use: with the least room that suffices (best
  // fit), of equals on the lowest host, then the oldest.
  std::optional<std::uint64_t> find(const Slots& slots, std::int32_t milli) const;
  // By fragments: the one on which they grow least, of equals as find() has it; none where they
  // grow less on one that is free.
  std::optional<std::uint64_t> find_by(const FragmentTable& fragments, const Slots& slots,
                                       std::int32_t milli) const;
  std::uint64_t next() const { return next_; }  // the number of the next opening
  std::int32_t host_of(std::uint64_t gpu) const { return gpus_.at(gpu).host; }
  // Whether it is opened for this part. There must be room.
  bool join(std::uint64_t gpu, std::int32_t host, GpuPart part);
  struct Left {
    std::int32_t host = 0;
    std::optional<std::uint32_t> other;  // a job that is still there; none: it is closed
  };
  Left leave(std::uint32_t job);
  // Where a job is; none: on no shared accelerator.
  std::optional<std::uint64_t> gpu_of(std::uint32_t job) const;
  const std::map<std::uint64_t, SharedGpu>& gpus() const { return gpus_; }
  // Those that a job joined or left since the last call, each once; some are closed.
  bool watched() const { return watched_; }
  std::vector<std::uint64_t> take_changed();

 private:
  using Room = std::tuple<std::int32_t, std::int32_t, std::uint64_t>;  // thousandths, host, number
  void list(std::uint64_t number, const SharedGpu& gpu);
  void unlist(std::uint64_t number, const SharedGpu& gpu);

  bool share_, watched_;
  std::vector<std::uint64_t> changed_;
  std::map<std::uint64_t, SharedGpu> gpus_;
  std::map<std::uint32_t, std::uint64_t> gpu_of_;
  std::set<Room> by_room_;  // that have some; none where nobody shares
  std::int64_t unshared_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace orrery
