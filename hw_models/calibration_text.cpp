// SPDX-License-Identifier: Apache-2.0
// Knows how a calibration is written down, so that read_calibration reads it back.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "hw_models/calibration.h"
#include "sim/base/json/tree.h"

namespace orrery {

namespace {

// Four significant digits: more than any fit here is worth, and diffs stay readable.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
  const double digits = std::round(value / unit);
  return std::stod(fmt::format("{:.4g}", digits * unit));
}

std::string text(double si, double unit, const char* name) {
  return fmt::format("{} {}", rounded(si / unit), name);
}

template <class Q>
Json sourced(const Sourced<Q>& s, double unit, const char* name) {
  const auto one = [&](double si) { return text(si, unit, name); };
  Json json;
  json["value"] = one(s.get().si());
  if (s.low) json["low"] = one(s.low->si());
  if (s.high) json["high"] = one(s.high->si());
  json["evidence"] = to_text(s.evidence);
  json["source"] = s.source;
  if (!s.reason.empty()) json["reason"] = s.reason;
  return json;
}

Json number_json(const Sourced<double>& s) {
  Json json;
  json["value"] = rounded(s.get());
  if (s.low) json["low"] = rounded(*s.low);
  if (s.high) json["high"] = rounded(*s.high);
  json["evidence"] = to_text(s.evidence);
  json["source"] = s.source;
  if (!s.reason.empty()) json["reason"] = s.reason;
  return json;
}

// Parameters that most curves leave as they are.
void add_rare(Json& p, const Curve& c) {
  const Curve plain;
  const auto add = [&](const char* name, double value, double usual) {
    if (value != usual) p[name] = rounded(value);
  };
  const auto add_time = [&](const char* name, double seconds) {
    if (seconds != 0) p[name] = text(seconds, 1e-6, "us");
  };
  add("partial_tile", c.partial_tile, plain.partial_tile);
  add("row_cluster", c.row_cluster, plain.row_cluster);
  add("sector_factor", c.sector_factor, plain.sector_factor);
  add("packed_heads", c.packed_heads, plain.packed_heads);
  add_time("split_start", c.split_seconds);
  add("split_exposed", c.split_exposed, plain.split_exposed);
  add("most_splits", c.most_splits, plain.most_splits);
  add("split_growth", c.split_growth, plain.split_growth);
  add("split_waves", c.split_waves, plain.split_waves);
  add("balanced", c.balanced, plain.balanced);
  add_time("block_start", c.block_seconds);
  add_time("tile_start", c.tile_seconds);
  add("block_exposed", c.block_exposed, plain.block_exposed);
  add("resident_blocks", c.resident_blocks, plain.resident_blocks);
  add("row_room", c.row_room, plain.row_room);
  add("dim_step", c.dim_step, plain.dim_step);
  add("stream_width", c.stream_width, plain.stream_width);
  add("block_scale_factor", c.block_scale_factor, plain.block_scale_factor);
}

Json product_parameters(const Curve& c) {
  Json p;
  p["tensor_efficiency"] = rounded(c.tensor_efficiency);
  p["k_half"] = rounded(c.k_half);
  p["wave_exponent"] = rounded(c.wave_exponent);
  p["tile_m"] = c.tile_m;
  p["tile_n"] = c.tile_n;
  p["tile_loss"] = rounded(c.tile_loss);
  p["split_k"] = rounded(c.split_k);
  p["misaligned_factor"] = rounded(c.misaligned_factor);
  p["epilogue_exposed"] = rounded(c.epilogue_exposed);
  p["accumulate_exposed"] = rounded(c.accumulate_exposed);
  p["energy_factor"] = rounded(c.energy_factor);
  p["roles"] = {{"forward", rounded(c.role_factor[0])},
                {"input_gradient", rounded(c.role_factor[1])},
                {"weight_gradient", rounded(c.role_factor[2])}};
  return p;
}

Json attention_parameters(const Curve& c) {
  Json p;
  p["tensor_efficiency"] = rounded(c.tensor_efficiency);
  p["k_half"] = rounded(c.k_half);
  p["tile_m"] = c.tile_m;
  p["tile_n"] = c.tile_n;
  p["wave_exponent"] = rounded(c.wave_exponent);
  p["head_dim_exponent"] = rounded(c.head_dim_exponent);
  p["energy_factor"] = rounded(c.energy_factor);
  if (c.kind == WorkKind::attention_decode) {
    p["split_k"] = rounded(c.split_k);
    return p;
  }
  p["special_efficiency"] = rounded(c.special_efficiency);
  p["misaligned_factor"] = rounded(c.misaligned_factor);
  p["epilogue_exposed"] = rounded(c.epilogue_exposed);
  if (c.bytes_per_score > 0) p["bytes_per_score"] = rounded(c.bytes_per_score);
  return p;
}

Json quality_json(const FitQuality& q) {
  Json json = {{"fitted", q.fitted},
               {"held_out", q.held_out},
               {"median_error", rounded(q.median)},
               {"p90_error", rounded(q.p90)}};
  if (q.region.known()) {
    Json region;
    // Whole extents as they are: a rounded end would leave its own row outside.
    for (const Extent& extent : q.region.extents)
      region[std::string(to_text(extent.axis))] = {extent.low, extent.high};
    region["per_octave"] = rounded(q.region.per_octave);
    json["region"] = region;
  }
  for (const ParameterSpread& spread : q.spread)
    json["spread"][spread.name] = rounded(spread.relative_error);
  return json;
}

Json energy_json(const Calibration& c) {
  Json json;
  for (std::size_t f = 0; f < format_count; ++f)
    if (c.tensor_energy[f].known())
      json["tensor"][std::string(to_text(static_cast<Format>(f)))] =
          sourced(c.tensor_energy[f], 1e-12, "pJ/FLOP");
  if (c.memory_energy.known()) json["memory"] = sourced(c.memory_energy, 1e-12, "pJ/B");
  if (c.busy_share.known()) json["busy"] = number_json(c.busy_share);
  return json;
}

Json curve_json(const Curve& c) {
  Json json;
  json["kind"] = to_text(c.kind);
  json["format"] = to_text(c.format);
  json["library"] = to_text(c.library);
  if (!c.variant.empty()) json["variant"] = c.variant;
  json["scale"] = number_json(c.scale);
  if (c.quality.fitted > 0) json["fit"] = quality_json(c.quality);
  Json p = is_product(c.kind)     ? product_parameters(c)
           : is_attention(c.kind) ? attention_parameters(c)
                                  : Json::object();
  add_rare(p, c);
  p["memory_efficiency"] = rounded(c.memory_efficiency);
  if (c.l2_efficiency > 0) p["l2_efficiency"] = rounded(c.l2_efficiency);
  p["saturation"] = text(c.saturation_bytes, 1e6, "MB");
  p["fixed"] = text(c.fixed_seconds, 1e-6, "us");
  json["parameters"] = p;
  return json;
}

}  // namespace

std::string to_json_text(const Calibration& calibration, const std::string& note) {
  Json json;
  json["device"] = calibration.device;
  if (!calibration.borrowed_from.empty()) json["based_on"] = calibration.borrowed_from;
  json["note"] = note;
  if (calibration.launch_latency.known() && calibration.graph_latency.known())
    json["launch"] = {{"stream", sourced(calibration.launch_latency, 1e-6, "us")},
                      {"graph", sourced(calibration.graph_latency, 1e-6, "us")}};
  if (const Json energy = energy_json(calibration); !energy.is_null()) json["energy"] = energy;
  json["curves"] = Json::array();
  for (const Curve& curve : calibration.curves) json["curves"].push_back(curve_json(curve));
  for (const Curve& curve : calibration.variants) json["variants"].push_back(curve_json(curve));
  return json.dump(1) + "\n";
}

}  // namespace orrery
