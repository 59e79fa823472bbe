// SPDX-License-Identifier: Apache-2.0
// Tests how the words of a row's network are read.
#include <catch2/catch.hpp>

#include "sim/validate/rows/aliases.h"

namespace orrery {

TEST_CASE("interconnects are read by grammar") {
  const auto rate = [](const char* text) { return parse_interconnect(text, 8).gigabits_per_gpu; };
  CHECK(rate("NVLink4 8-GPU + IB NDR 400G/GPU") == 400.0);
  CHECK(rate("NVLink4 8-GPU + EFA 3200G/node") == 400.0);
  CHECK(rate("1600Gbps RoCE") == 200.0);
  CHECK(rate("NVLink3 + 800Gbps/node (4x HDR200)") == 100.0);
  CHECK(rate("NVLink3 + 4x OmniPath 100Gb/node") == 50.0);
  CHECK(rate("NVLink3/NVSwitch 600GB/s + 8x HDR200 IB") == 200.0);
  CHECK(rate("NVLink4 + IB 8x400G") == 400.0);
  CHECK(rate("NVLink5 NVL72 domain + IB/Eth 800G") == 800.0);
  CHECK(rate("24x 100Gb/s Ethernet | 2x Mellanox ConnectX-5 Ex 100Gb/s Ethernet") == 300.0);
  CHECK(rate("NVLINK Gen4 900 GB/s + NVSWITCH Gen3 | Storage: 2x ConnectX-7 IB NDR 400Gb/s, "
             "Compute: 8x ConnectX-7 IB NDR 400Gb/s, Man") == 400.0);
  CHECK(rate("NVLink3 + IB HDR") == 200.0);
  CHECK(rate("EFA 3.2 Tbps") == 400.0);
  CHECK(rate("NVLink4 + 4 NDR200 NICs") == 100.0);
  CHECK(rate("NVLink3 + 4x EDR") == 50.0);
  CHECK(rate("2x HDR100") == 25.0);
  CHECK(rate("8 x 400 Gb/s RoCE") == 400.0);
  CHECK(rate("8x HDR IB (1600 Gbps/node)") == 200.0);
  // Links inside the host, management and storage are no network between GPUs; GB are bytes.
  CHECK_FALSE(rate("18x 4th Gen NVLink, 900GB/s").has_value());
  CHECK_FALSE(
      rate("NVSWITCH Gen3 | Storage+Management: 1x NVIDIA BlueField 2 DPU 100Gb/s, Compute: "
           "8x NVIDIA Connect")
          .has_value());
  CHECK_FALSE(
      rate("18x 5th Gen NVLink, 14.4 TB/s aggregated bandwidth | InfiniBand; Data bandwidth "
           "for GPU-PCIe: 504 GB/s; PCIe-NIC: 500 GB/s")
          .has_value());
  CHECK_FALSE(rate("NVLink3").has_value());
  CHECK_FALSE(rate("").has_value());
}

}  // namespace orrery
