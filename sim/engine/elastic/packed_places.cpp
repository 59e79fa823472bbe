// SPDX-License-Identifier: Apache-2.0
// Moves smaller jobs out of the way of larger ones, and only then.
#include "sim/engine/elastic/packed_places.h"

#include <algorithm>
#include <queue>

#include "sim/base/errors/check.h"
#include "sim/engine/elastic/goodput_sizes.h"

namespace orrery {
namespace {

// What a job has on one host.
struct PlacedPiece {
  std::size_t job = 0;
  std::int32_t gpus = 0, aside = 0;
};

class PackedPlaces {
 public:
  PackedPlaces(const RoundView& view, const std::vector<std::int32_t>& gpus,
               std::vector<Grants>& places)
      : view_(view),
        gpus_(gpus),
        places_(places),
        room_(view.question.hosts, view.question.gpus_per_host),
        on_host_(static_cast<std::size_t>(view.question.hosts)) {}
  void run();

 private:
  struct PendingPiece {
    PlacedPiece piece;
    // Larger ones first, of equals those of the older job.
    bool operator<(const PendingPiece& o) const {
      return piece.aside != o.piece.aside ? piece.aside < o.piece.aside : piece.job > o.piece.job;
    }
  };
  PlacedPiece piece_of(std::size_t job, std::int32_t gpus) const;
  void split(std::size_t job);
  void put(const PlacedPiece& piece, std::int32_t host);
  void place(const PlacedPiece& piece);
  std::int32_t make_room(std::int32_t size);
  void remove(const PlacedPiece& piece, std::int32_t host);

  const RoundView& view_;
  const std::vector<std::int32_t>& gpus_;
  std::vector<Grants>& places_;
  HostRoom room_;
  std::vector<std::vector<PlacedPiece>> on_host_;
  std::priority_queue<PendingPiece> pending_;
};

void PackedPlaces::run() {
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i] == 0) continue;
    const Grants& now = *view_.jobs[i].place;
    if (gpus_of_place(now) != gpus_[i]) {
      split(i);
      continue;
    }
    places_[i] = now;
    for (const HostGrant& grant : now) put(piece_of(i, grant.gpus), grant.host);
  }
  while (!pending_.empty()) {
    const PlacedPiece piece = pending_.top().piece;
    pending_.pop();
    place(piece);
  }
  for (Grants& place : places_)
    std::sort(place.begin(), place.end(),
              [](const HostGrant& a, const HostGrant& b) { return a.host < b.host; });
}

PlacedPiece PackedPlaces::piece_of(std::size_t job, std::int32_t gpus) const {
  const std::int32_t host = view_.question.gpus_per_host;
  const bool whole = view_.question.apart && gpus_[job] > host;
  return {job, gpus, whole ? host : set_aside(gpus, host, true)};
}

void PackedPlaces::split(std::size_t job) {
  for (std::int32_t left = gpus_[job]; left > 0; left -= view_.question.gpus_per_host)
    pending_.push({piece_of(job, std::min(left, view_.question.gpus_per_host))});
}

void PackedPlaces::put(const PlacedPiece& piece, std::int32_t host) {
  room_.change(host, -piece.aside);
  on_host_[static_cast<std::size_t>(host)].push_back(piece);
}

void PackedPlaces::place(const PlacedPiece& piece) {
  std::int32_t host = room_.tightest(piece.aside);
  if (host < 0) host = make_room(piece.aside);
  put(piece, host);
  places_[piece.job].push_back({host, 1, piece.gpus});
}

// Moves pieces of less than `size` out of a host, so that it has room for `size`. One exists: what
// is free is at least `size`, and larger pieces take multiples of it.
std::int32_t PackedPlaces::make_room(std::int32_t size) {
  std::int32_t best = -1, best_free = -1;
  for (std::int32_t h = 0; h < view_.question.hosts; ++h) {
    std::int32_t could = room_.free_of(h);
    for (const PlacedPiece& piece : on_host_[static_cast<std::size_t>(h)])
      if (piece.aside < size) could += piece.aside;
    if (could < size || room_.free_of(h) <= best_free) continue;
    best = h;
    best_free = room_.free_of(h);
  }
  CHECK_THAT(best >= 0, "what is set aside is more than there is");
  std::vector<PlacedPiece> movable = on_host_[static_cast<std::size_t>(best)];
  std::erase_if(movable, [&](const PlacedPiece& piece) { return piece.aside >= size; });
  std::stable_sort(movable.begin(), movable.end(),
                   [](const PlacedPiece& a, const PlacedPiece& b) { return a.aside < b.aside; });
  for (const PlacedPiece& piece : movable) {
    if (room_.free_of(best) >= size) break;
    remove(piece, best);
  }
  return best;
}

void PackedPlaces::remove(const PlacedPiece& piece, std::int32_t host) {
  const auto is_it = [&](const PlacedPiece& one) { return one.job == piece.job; };
  std::erase_if(on_host_[static_cast<std::size_t>(host)], is_it);
  std::erase_if(places_[piece.job], [&](const HostGrant& grant) { return grant.host == host; });
  room_.change(host, piece.aside);
  pending_.push({piece});
}

}  // namespace

void place_packed(const RoundView& view, const std::vector<std::int32_t>& gpus,
                  std::vector<Grants>& places) {
  PackedPlaces(view, gpus, places).run();
}

}  // namespace orrery
