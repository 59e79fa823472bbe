// SPDX-License-Identifier: Apache-2.0
// Knows tori: the shape of a slice, its links, cubes and optical circuit switches.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "topologies/fabric.h"

namespace orrery {

// The three factors of `units` with the least sum, the least first: 9 -> 1 x 3 x 3.
std::array<std::int64_t, 3> most_cube_like(std::int64_t units);

struct TorusAxis {
  std::int64_t size = 1;
  bool ring = false;    // the ends are joined; never with fewer than three
  BytesPerSecond link;  // one link, per direction
};

// A torus, or a mesh where axes are open: one accelerator at every point.
struct TorusShape {
  std::vector<TorusAxis> axes;
  std::int64_t cube = 0;  // edge of the copper blocks; 0: no optical circuit switches

  std::int64_t points() const;
  std::int64_t links() const;  // between neighbours, duplex
  std::int64_t links_on(std::size_t axis) const;
  int diameter() const;  // hops
  // The least rate per direction over the planes that halve it: for X x Y x Z of rings, cut across
  // X, 2 x Y x Z links (open chains: half). Where no axis is even, across the longest one.
  BytesPerSecond bisection() const;

  // Each axis line of a cube ends at two opposite faces, and links of the same index on opposite
  // faces go to one circuit switch (Jouppi et al. 2023), which so has two ports of every cube.
  std::int64_t cubes() const;             // 0 where the shape is not made of whole cubes
  std::int64_t optical_links() const;     // of all cubes: edge^2 on each of six faces
  std::int64_t circuit_switches() const;  // 3 x edge^2
};

// The slice of a scale-up torus that holds `accelerators` of its domain. With cubes: whole cubes,
// as cube-like as their number allows, every axis a ring; below a cube open chains within it.
// Without: as square as it goes within the whole domain's shape, where only axes of full length
// close; axes with faster links fill first (Trn2: an instance is the 4 x 4 of the fast ones).
TorusShape torus_slice(const ScaleUp& scale_up, std::int64_t accelerators);

}  // namespace orrery
