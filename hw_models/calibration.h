// SPDX-License-Identifier: Apache-2.0
// Knows how near a device comes to its peaks: efficiency curves by kernel kind, format, library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/region.h"
#include "sim/base/json/json.h"
#include "sim/base/names.h"
#include "sim/base/units/sourced.h"
#include "sim/base/work.h"

namespace orrery {

// How sure a fitted parameter is: its standard error over its value.
struct ParameterSpread {
  // As calibration files call it: "tensor_efficiency", "roles.forward". It lasts: a literal.
  std::string_view name;
  double relative_error = 0;
};

// What a fit calls the factors of a product's roles (Curve::role_factor).
inline constexpr std::string_view role_factor_names[3] = {"roles.forward", "roles.input_gradient",
                                                          "roles.weight_gradient"};

// How well a curve predicts measurements that its fit never saw, and where it was measured.
struct FitQuality {
  int fitted = 0, held_out = 0;              // number of measured rows
  double median = 0, p90 = 0;                // |predicted / measured - 1| of the held-out rows
  Region region = {};                        // of all measured rows; empty: not recorded
  std::vector<ParameterSpread> spread = {};  // of what the fit moved, by name
};

// Parameters of one curve: physical, few, the same for every shape. A kind uses the ones it needs;
// the comment of each says how its kind's formula uses it (gemm_time.cpp, attention_time.cpp; what
// streams, and what all share, in kernel_time.cpp).
struct Curve {
  double tensor_efficiency = 0;  // of the tensor peak for large k and full waves of large tiles
  double k_half = 0;             // start-up of a tile, as extra elements of k (keys for attention)
  double wave_exponent = 1;      // 1: a partial wave costs a full one (attention: its longest
                                 // block ends last); 0: it costs its share
  double tile_m = 128, tile_n = 256;  // largest tile; halves and quarters of it are tried
  double tile_loss = 0;     // operand loads: tile time goes with 1 + tile_loss (1/m + 1/n)
  double partial_tile = 1;  // what a tile's missing rows and columns cost: 1 as if filled
  double row_cluster = 0;  // 0: the library picks the fastest tile; else tiles are tile_m x tile_n,
                           // in rows of so many, halved while they still hold all of m
  double split_k = 1024;   // k (decode: keys) is split over idle processors down to this many
  double split_seconds = 0;  // joining the parts: a start of its own (attention: again for each
                             // doubling of the parts)
  double split_exposed = 0;  // partial results in fp32, written and read: share of HBM's time
  double most_splits = 0;    // attention: parts that keys are cut into at most; 0: decode knows
                             // no limit, prefill does not cut
  double split_growth = 0;   // decode: no more parts than the root of so many times keys / split_k;
                             // 0: no such limit
  double split_waves = 0;    // decode: as many parts as fill a processor with so many blocks, each
                             // of split_k keys at least; 0: as many as use its rounds best
  double balanced = 0;       // decode: 1 where parts are dealt so that all processors end together
  double block_seconds = 0;  // attention: what a block costs (prefill: after the first wave);
                             // grouped products: what a group costs, with rows or without;
                             // streams: what a block takes of the device's time
  double tile_seconds = 0;   // decode: least time of a tile of tile_n keys in one block: its loads
  double resident_blocks = 1;  // attention: blocks of 256-byte rows that fit on a processor
  double row_room = 0;         // decode: rows x head size up to which they do; above, one fewer
  double block_exposed = 1;    // decode: share of the shorter of starts and streams that adds
  double stream_width = 0;  // streams: blocks that fill the memory, over the processors; 0: any do
  double misaligned_factor = 1;  // tensor time of a shape that is off the 16-byte grid
  double sector_factor = 1;  // the same on that grid, off the 64-byte one (half off: on 32 bytes)
  double dim_step = 1;       // attention: head sizes are padded to a multiple; 0: to a power of two
  double packed_heads = 1;   // attention: heads that share keys share tiles; 0: tiles of their own
  double head_dim_exponent = 0;   // attention below head dimension 128: (128 / dim) to this power
  double memory_efficiency = 0;   // of HBM bandwidth for large streams
  double l2_efficiency = 0;       // of L2 bandwidth for cache-resident operands; 0: no reuse
  double special_efficiency = 0;  // of the exponential units (attention); 0: not a limit
  double vector_efficiency = 1;   // of the fp32 units
  double saturation_bytes = 0;    // bytes in flight at which a stream reaches half its bandwidth:
                                  // the latency of what it reads, memory or L2
  double bytes_per_score = 0;     // attention scores that go through memory (unfused)
  double epilogue_exposed = 0;    // share of the traffic (GEMM: of the result's) that nothing hides
  double accumulate_exposed = 0.5;  // the same for a result that is added to an fp32 buffer
  double energy_factor = 1;  // tensor energy against that of a plain product (softmax, padding)
  double block_scale_factor = 1;      // tensor time of operands with a scale for each block (MX)
  double role_factor[3] = {1, 1, 1};  // GEMM time by role: forward, input gradient, weight gradient
  double fixed_seconds = 0;           // start-up and drain inside the device, at zero work
  // Evidence for the whole curve. `scale` multiplies its time: 1 when measured; borrowed curves
  // carry a range around their scaling to this device.
  Sourced<double> scale;
  FitQuality quality;
  WorkKind kind = WorkKind::elementwise;  // what the curve was fitted for
  Format format = Format::bf16;
  Library library = Library::cublas;
  bool present = false;
  std::string variant;  // the one kernel that it is of ("rms-backward"); empty: any of its kind
};

// All curves of one device. Lookup falls back: exact (kind, format, library) -> same kind and
// format, any library (products and attention) -> same kind, bf16 -> the nearest kind. A device
// without any borrows.
struct Calibration {
  // Compiled once: it is long, and units all over the program hold one.
  Calibration();
  Calibration(const Calibration&);
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(const Calibration&);
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();

  std::string device;         // catalogue name it belongs to
  std::string borrowed_from;  // name of the measured device, or ""
  std::vector<Curve> curves;  // the distinct ones, in the order of the file
  // Curves of single kernels, by name. Work does not name its kernel: they serve what does, such as
  // measurements (use_variant).
  std::vector<Curve> variants;
  std::array<std::uint16_t, std::size_t{work_kind_count} * format_count * library_count> index{};
  // Sustained tensor work: energy per tensor operation and per byte, by format, for the power
  // model.
  std::array<Sourced<JoulesPerFlop>, format_count> tensor_energy;
  Sourced<JoulesPerByte> memory_energy;
  // Power of busy processors outside tensor work, over the board's limit less idle power: a kernel
  // that waits for memory keeps them clocked and draws it whatever bandwidth it reaches.
  Sourced<double> busy_share;
  // Gaps on the device between dependent kernels, of one stream and inside a CUDA graph. Curves are
  // without them.
  Sourced<Seconds> launch_latency, graph_latency;

  Seconds kernel_gap(bool in_graph) const {
    return (in_graph ? graph_latency : launch_latency).value.value_or(Seconds(0));
  }

  static std::size_t slot(WorkKind kind, Format format, Library library) {
    return (static_cast<std::size_t>(kind) * format_count + static_cast<std::size_t>(format)) *
               library_count +
           static_cast<std::size_t>(library);
  }
  // Never fails after complete(): the fallback order above is resolved there.
  const Curve& curve(WorkKind kind, Format format, Library library) const {
    return curves[index[slot(kind, format, library)]];
  }
  // The name of a curve in reports: "gemm.bf16.cublas".
  static std::string name(const Curve& curve);
};

// What calibration files call a parameter: "tensor_efficiency". CHECKs that files hold it.
std::string_view parameter_name(double Curve::*parameter);

// Fills `index` from `curves` by the fallback order. CHECKs that there is at least one curve.
void complete(Calibration& calibration);

// Adds a curve, or replaces the one of the same kind, format, library and variant.
void put_curve(Calibration& calibration, Curve curve);

// Lets the curve of one named kernel stand for all of its kind, format and library; without such a
// curve nothing changes. The calibration must be complete.
void use_variant(Calibration& calibration, WorkKind kind, Format format, Library library,
                 const std::string& variant);

// Reads one calibration file (schema in hw_models/calibration/README.md) and completes the table.
// `base` is what the file's "based_on" names, already read: its curves stand until the file
// replaces them, and curves may be "like" one of it. load_calibration finds the files of a device,
// follows based_on and adds the estimates of the architecture.
Calibration read_calibration(const JsonValue& file, const Calibration* base = nullptr);

// Whose curves are wanted: of kernels of any name, or also those of single kernels
// (Calibration::variants), which only measurements name.
enum class Kernels { any, named };

// What the file itself says, without its base and without completing the table; its curves may be
// "like" one of `known`.
Calibration read_own_part(const JsonValue& file, const Calibration& known,
                          Kernels kernels = Kernels::named);

// Lays curves, energies and gaps of `better` over those of `calibration`; its curves come first.
void lay_over(Calibration& calibration, Calibration better);

// Takes energies and gaps of `other` where the calibration has none.
void add_missing_energies(Calibration& calibration, const Calibration& other);

// Marks every curve as estimated, with its scale between `low` and `high` times its value at least,
// and so energies and gaps that were measured: they are another device's here.
void widen(Calibration& calibration, double low, double high, const std::string& reason);

struct Device;

// What is known of a device without its own tables: the estimates of the device, of its
// architecture and of any accelerator, in this order (hw_models/calibration/estimates/).
Calibration load_estimates(const Device& device);

// Adds the curves of an estimates file wherever the calibration has none of that kind, format and
// library: estimates never replace measurements.
void add_estimates(Calibration& calibration, const JsonValue& file);

// The JSON text of a calibration's curves, and of its energies and gaps where they are known, as
// read_calibration reads it.
std::string to_json_text(const Calibration& calibration, const std::string& note);

// Calls visit(path, sourced) on every Sourced value, in a fixed order: for ranges and law 12.
template <class CalibrationRef, class Visit>
void visit_calibration(CalibrationRef& c, Visit&& visit) {
  for (auto& curve : c.curves) visit("calibration." + Calibration::name(curve), curve.scale);
  for (int f = 0; f < format_count; ++f)
    visit("calibration.tensor_energy." + std::string(to_text(static_cast<Format>(f))),
          c.tensor_energy[static_cast<std::size_t>(f)]);
  visit("calibration.memory_energy", c.memory_energy);
  visit("calibration.busy_share", c.busy_share);
  visit("calibration.launch_latency", c.launch_latency);
  visit("calibration.graph_latency", c.graph_latency);
}

}  // namespace orrery
