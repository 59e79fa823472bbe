// SPDX-License-Identifier: Apache-2.0
// Lists the readers of programs' configurations.
#pragma once

#include "sim/launch/read/section_reader.h"

namespace orrery {

// Each fills settings of a question from `said`, and "gpus" where it can be told.
void read_megatron(GivenReading& reading, const GivenWords& given);
void read_megatron_deepspeed(GivenReading& reading, const GivenWords& given);
void read_bridge(GivenReading& reading, const GivenWords& given);
void read_nemo2(GivenReading& reading, const GivenWords& given);
void read_nemo1(GivenReading& reading, const GivenWords& given);
void read_primus(GivenReading& reading, const GivenWords& given);
void read_titan(GivenReading& reading, const GivenWords& given);
void read_automodel(GivenReading& reading, const GivenWords& given);
void read_nanotron(GivenReading& reading, const GivenWords& given);
void read_deepspeed(GivenReading& reading, const GivenWords& given);
void read_maxtext(GivenReading& reading, const GivenWords& given);
void read_neuronx(GivenReading& reading, const GivenWords& given);
void read_gaudi(GivenReading& reading, const GivenWords& given);
void read_vllm(GivenReading& reading, const GivenWords& given);
void read_sglang(GivenReading& reading, const GivenWords& given);
void read_trtllm(GivenReading& reading, const GivenWords& given);

}  // namespace orrery
