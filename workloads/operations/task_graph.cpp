// SPDX-License-Identifier: Apache-2.0
// Names the labels of time.
#include "workloads/operations/task_graph.h"

namespace orrery {

std::string_view to_text(Label label) {
  switch (label) {
    case Label::gemm:
      return "gemm";
    case Label::attention:
      return "attention";
    case Label::elementwise:
      return "elementwise";
    case Label::quantise:
      return "quantise";
    case Label::expert:
      return "expert";
    case Label::loss:
      return "loss";
    case Label::recompute:
      return "recompute";
    case Label::optimizer:
      return "optimizer";
    case Label::tensor_comm:
      return "tensor_comm";
    case Label::context_comm:
      return "context_comm";
    case Label::expert_comm:
      return "expert_comm";
    case Label::data_comm:
      return "data_comm";
    case Label::pipeline_comm:
      return "pipeline_comm";
    case Label::host:
      return "host";
    case Label::bubble:
      return "bubble";
  }
  return "";
}

}  // namespace orrery
