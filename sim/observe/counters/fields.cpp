// SPDX-License-Identifier: Apache-2.0
// Lists the fields of nvidia-smi (its own help), of DCGM (dcgm_fields.h, the exporter's
// default-counters.csv) and of node_exporter.
#include "sim/observe/counters/fields.h"

#include <array>
#include <span>

namespace orrery::observe {
namespace {

using enum Counter;
constexpr double mega = 1e6, percent = 0.01, mebi = 1048576, milli = 1e-3;

constexpr std::array dmon_fields = {
    Field{"pwr", power},
    Field{"gtemp", temperature},
    Field{"mtemp", memory_temperature},
    Field{"sm", gpu_utilisation, percent},
    Field{"mem", memory_utilisation, percent},
    Field{"mclk", memory_clock, mega},
    Field{"pclk", sm_clock, mega},
    Field{"pviol", power_violation, percent},
    Field{"tviol", thermal_violation},
    Field{"fb", memory_used, mebi},
    Field{"sbecc", ecc_corrected},
    Field{"dbecc", ecc_uncorrected},
    Field{"pci", pcie_replays},
    Field{"rxpci", pcie_received, mega},
    Field{"txpci", pcie_sent, mega},
    Field{"smutil", sm_active, percent},
    Field{"smocc", sm_occupancy, percent},
    Field{"mmaact", tensor_active, percent},
};

constexpr std::array query_fields = {
    Field{"clocks.current.sm", sm_clock, mega},
    Field{"clocks.sm", sm_clock, mega},
    Field{"clocks.current.memory", memory_clock, mega},
    Field{"clocks.mem", memory_clock, mega},
    Field{"clocks.max.sm", most_sm_clock, mega},
    Field{"power.draw", power},
    Field{"power.draw.average", power, 1, "average"},
    Field{"power.draw.instant", power, 1, "instant"},
    Field{"power.limit", power_limit, 1, "requested"},
    Field{"enforced.power.limit", power_limit},
    Field{"temperature.gpu", temperature},
    Field{"temperature.memory", memory_temperature},
    Field{"utilization.gpu", gpu_utilisation, percent},
    Field{"utilization.memory", memory_utilisation, percent},
    Field{"memory.used", memory_used, mebi},
    Field{"memory.free", memory_free, mebi},
    Field{"pcie.link.gen.current", pcie_generation},
    Field{"pcie.link.width.current", pcie_width},
    Field{"pstate", performance_state},
    Field{"clocks_event_reasons.active", throttle_reasons},
    Field{"clocks_throttle_reasons.active", throttle_reasons},
    Field{"clocks_event_reasons.sw_power_cap", throttled, 1, "power cap"},
    Field{"clocks_throttle_reasons.sw_power_cap", throttled, 1, "power cap"},
    Field{"clocks_event_reasons.applications_clocks_setting", throttled, 1, "clock setting"},
    Field{"clocks_throttle_reasons.applications_clocks_setting", throttled, 1, "clock setting"},
    Field{"clocks_event_reasons.hw_slowdown", throttled, 1, "hardware"},
    Field{"clocks_throttle_reasons.hw_slowdown", throttled, 1, "hardware"},
    Field{"clocks_event_reasons.hw_thermal_slowdown", throttled, 1, "hardware thermal"},
    Field{"clocks_throttle_reasons.hw_thermal_slowdown", throttled, 1, "hardware thermal"},
    Field{"clocks_event_reasons.hw_power_brake_slowdown", throttled, 1, "power brake"},
    Field{"clocks_throttle_reasons.hw_power_brake_slowdown", throttled, 1, "power brake"},
    Field{"clocks_event_reasons.sw_thermal_slowdown", throttled, 1, "software thermal"},
    Field{"clocks_throttle_reasons.sw_thermal_slowdown", throttled, 1, "software thermal"},
    Field{"clocks_event_reasons.sync_boost", throttled, 1, "sync boost"},
    Field{"clocks_throttle_reasons.sync_boost", throttled, 1, "sync boost"},
    Field{"ecc.errors.corrected.volatile.total", ecc_corrected},
    Field{"ecc.errors.uncorrected.volatile.total", ecc_uncorrected},
    Field{"remapped_rows.correctable", remapped_corrected},
    Field{"remapped_rows.uncorrectable", remapped_uncorrected},
    Field{"remapped_rows.pending", remap_pending},
    Field{"remapped_rows.failure", remap_failed},
    Field{"retired_pages.single_bit_ecc.count", retired_pages, 1, "single bit"},
    Field{"retired_pages.double_bit.count", retired_pages, 1, "double bit"},
};

constexpr std::array dcgmi_fields = {
    Field{"SMCLK", sm_clock, mega},
    Field{"MMCLK", memory_clock, mega},
    Field{"POWER", power},
    Field{"TOTEC", energy, milli},
    Field{"TMPTR", temperature},
    Field{"MMTMP", memory_temperature},
    Field{"GPUTL", gpu_utilisation, percent},
    Field{"MCUTL", memory_utilisation, percent},
    Field{"FBUSD", memory_used, mebi},
    Field{"FBFRE", memory_free, mebi},
    Field{"GRACT", graphics_active},
    Field{"SMACT", sm_active},
    Field{"SMOCC", sm_occupancy},
    Field{"TENSO", tensor_active},
    Field{"DRAMA", dram_active},
    Field{"FP64A", fp64_active},
    Field{"FP32A", fp32_active},
    Field{"FP16A", fp16_active},
    Field{"PCITX", pcie_sent},
    Field{"PCIRX", pcie_received},
    Field{"NVLTX", nvlink_sent},
    Field{"NVLRX", nvlink_received},
    Field{"DVCCTR", throttle_reasons},
    Field{"XIDER", last_xid},
};

constexpr std::array metric_fields = {
    Field{"DCGM_FI_DEV_SM_CLOCK", sm_clock, mega},
    Field{"DCGM_FI_DEV_MEM_CLOCK", memory_clock, mega},
    Field{"DCGM_FI_DEV_MAX_SM_CLOCK", most_sm_clock, mega},
    Field{"DCGM_FI_DEV_POWER_USAGE", power},
    Field{"DCGM_FI_DEV_POWER_USAGE_INSTANT", power, 1, "instant"},
    Field{"DCGM_FI_DEV_POWER_MGMT_LIMIT", power_limit, 1, "requested"},
    Field{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", power_limit},
    Field{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy, milli},
    Field{"DCGM_FI_DEV_GPU_TEMP", temperature},
    Field{"DCGM_FI_DEV_MEMORY_TEMP", memory_temperature},
    Field{"DCGM_FI_DEV_GPU_UTIL", gpu_utilisation, percent},
    Field{"DCGM_FI_DEV_MEM_COPY_UTIL", memory_utilisation, percent},
    Field{"DCGM_FI_DEV_FB_USED", memory_used, mebi},
    Field{"DCGM_FI_DEV_FB_FREE", memory_free, mebi},
    Field{"DCGM_FI_DEV_PCIE_LINK_GEN", pcie_generation},
    Field{"DCGM_FI_DEV_PCIE_LINK_WIDTH", pcie_width},
    Field{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", pcie_replays},
    Field{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", throttle_reasons},
    Field{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", throttle_reasons},
    Field{"DCGM_FI_DEV_POWER_VIOLATION", power_violation},
    Field{"DCGM_FI_DEV_THERMAL_VIOLATION", thermal_violation},
    Field{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", ecc_corrected},
    Field{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", ecc_uncorrected},
    Field{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", remapped_corrected},
    Field{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", remapped_uncorrected},
    Field{"DCGM_FI_DEV_ROW_REMAP_FAILURE", remap_failed},
    Field{"DCGM_FI_DEV_ROW_REMAP_PENDING", remap_pending},
    Field{"DCGM_FI_DEV_RETIRED_SBE", retired_pages, 1, "single bit"},
    Field{"DCGM_FI_DEV_RETIRED_DBE", retired_pages, 1, "double bit"},
    Field{"DCGM_FI_DEV_XID_ERRORS", last_xid},
    Field{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", nvlink_crc_errors, 1, "flit"},
    Field{"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", nvlink_crc_errors, 1, "data"},
    Field{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", nvlink_replays},
    Field{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", nvlink_recoveries},
    Field{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", graphics_active},
    Field{"DCGM_FI_PROF_SM_ACTIVE", sm_active},
    Field{"DCGM_FI_PROF_SM_OCCUPANCY", sm_occupancy},
    Field{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", tensor_active},
    Field{"DCGM_FI_PROF_DRAM_ACTIVE", dram_active},
    Field{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", fp64_active},
    Field{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", fp32_active},
    Field{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", fp16_active},
    Field{"DCGM_FI_PROF_PCIE_TX_BYTES", pcie_sent},
    Field{"DCGM_FI_PROF_PCIE_RX_BYTES", pcie_received},
    Field{"DCGM_FI_PROF_NVLINK_TX_BYTES", nvlink_sent},
    Field{"DCGM_FI_PROF_NVLINK_RX_BYTES", nvlink_received},
    Field{"node_infiniband_port_data_transmitted_bytes_total", port_sent},
    Field{"node_infiniband_port_data_received_bytes_total", port_received},
    Field{"node_infiniband_rate_bytes_per_second", port_rate},
    Field{"node_infiniband_symbol_error_total", port_symbol_errors},
    Field{"node_infiniband_port_errors_received_total", port_receive_errors},
    Field{"node_infiniband_link_downed_total", port_link_downed},
    Field{"node_infiniband_link_error_recovery_total", port_link_recoveries},
    Field{"node_infiniband_port_discards_transmitted_total", port_discards, 1, "sent"},
    Field{"node_infiniband_port_discards_received_total", port_discards, 1, "received"},
    Field{"node_infiniband_port_transmit_wait_total", port_wait},
    Field{"node_infiniband_out_of_sequence_packets_received_total", port_out_of_order},
    Field{"node_infiniband_packet_sequence_errors_total", port_retransmits, 1, "sequence"},
    Field{"node_infiniband_local_ack_timeout_errors_total", port_retransmits, 1, "timeout"},
    Field{"node_infiniband_roce_adp_retransmits_total", port_retransmits, 1, "adaptive"},
    Field{"node_infiniband_np_congestion_notification_packets_sent_total", port_congestion_marks, 1,
          "sent"},
    Field{"node_infiniband_rp_congestion_notification_packets_handled_total", port_congestion_marks,
          1, "handled"},
};

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  for (const Field& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

}  // namespace

const Field* dmon_field(std::string_view name) { return find_field(dmon_fields, name); }
const Field* query_field(std::string_view name) { return find_field(query_fields, name); }
const Field* dcgmi_field(std::string_view name) { return find_field(dcgmi_fields, name); }
const Field* metric_field(std::string_view name) { return find_field(metric_fields, name); }

std::string_view counter_unit(Counter counter) {
  switch (counter) {
    case sm_clock:
    case memory_clock:
    case most_sm_clock:
      return "Hz";
    case power:
    case power_limit:
      return "W";
    case energy:
      return "J";
    case temperature:
    case memory_temperature:
      return "C";
    case gpu_utilisation:
    case memory_utilisation:
    case graphics_active:
    case sm_active:
    case sm_occupancy:
    case tensor_active:
    case dram_active:
    case fp64_active:
    case fp32_active:
    case fp16_active:
      return "share";
    case memory_used:
    case memory_free:
    case port_sent:
    case port_received:
      return "B";
    case nvlink_sent:
    case nvlink_received:
    case pcie_sent:
    case pcie_received:
    case port_rate:
      return "B/s";
    case throttle_reasons:
      return "bits";
    case power_violation:
    case thermal_violation:
      return "as told";
    case port_wait:
      return "ticks";
    case pcie_generation:
    case pcie_width:
    case last_xid:
    case performance_state:
    case throttled:
      return "number";
    default:
      return "count";
  }
}

bool counter_rises(Counter counter) {
  switch (counter) {
    case energy:
    case pcie_replays:
    case ecc_corrected:
    case ecc_uncorrected:
    case remapped_corrected:
    case remapped_uncorrected:
    case retired_pages:
    case nvlink_crc_errors:
    case nvlink_replays:
    case nvlink_recoveries:
    case port_sent:
    case port_received:
    case port_symbol_errors:
    case port_receive_errors:
    case port_link_downed:
    case port_link_recoveries:
    case port_discards:
    case port_wait:
    case port_out_of_order:
    case port_retransmits:
    case port_congestion_marks:
      return true;
    default:
      return false;
  }
}

}  // namespace orrery::observe
