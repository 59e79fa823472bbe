// SPDX-License-Identifier: Apache-2.0
// Builds what quantised products read: the traffic of making 8- and 4-bit copies of operands.
#include "workloads/operations/layer_operations.h"

namespace orrery {

Format LayerOperations::linear_format() const { return orrery::linear_format(layout_.precision); }

bool LayerOperations::block_scales() const { return layout_.precision == PrecisionRecipe::mxfp8; }

Format LayerOperations::plain_format() const {
  return layout_.precision == PrecisionRecipe::fp16 ? Format::fp16 : Format::bf16;
}

// Traffic of quantising one bf16 element, for one use or for both (as is and transposed): read 2 B
// and write the copies; current scaling reads once more for the maximum; block scales add 1/32 B
// per copy (MX) or 4 B per 128 (blockwise); NVFP4 reads twice (maximum, Hadamard transform).
double LayerOperations::quantise_bytes(bool both) const {
  const double copies = both ? 2 : 1;
  switch (layout_.precision) {
    case PrecisionRecipe::bf16:
    case PrecisionRecipe::fp16:
    case PrecisionRecipe::mxfp4:  // of weights alone
    case PrecisionRecipe::int4:
    case PrecisionRecipe::int8:
      return 0;
    case PrecisionRecipe::fp8_delayed:
      return 2 + copies;
    case PrecisionRecipe::fp8_current:
      return 4 + copies;
    case PrecisionRecipe::fp8_blockwise:
      return 2 + copies * (1 + 4.0 / 128);
    case PrecisionRecipe::mxfp8:
      return 2 + copies * (1 + 1.0 / 32);
    case PrecisionRecipe::nvfp4:
      return 4 + copies * (0.5 + 1.0 / 16);
  }
  return 0;
}

double LayerOperations::gathered_bytes() const {
  return layout_.precision == PrecisionRecipe::fp8_blockwise ? 2
                                                             : bytes_per_element(linear_format());
}

// Adapters leave no weight gradient, which alone reads the second copy. One copy of per-tensor
// scales serves both uses where products read either layout; where they do not, what is gathered is
// transposed after it (transpose_copy).
void LayerOperations::quantise(Segment& s, double elements, bool gathered) const {
  const bool second = job_.task != Task::lora && shape_.training;
  const bool both = second && (!per_tensor() || (stack_.kernels.transposed_copies && !gathered));
  quantise_traffic(s, elements, quantise_bytes(both));
}

void LayerOperations::transpose_copy(Segment& s, double elements) const {
  if (per_tensor() && stack_.kernels.transposed_copies) quantise_traffic(s, elements, 2);
}

void LayerOperations::quantise_traffic(Segment& s, double elements, double per_element) const {
  const double bytes = per_element * stack_.kernels.quantise_passes.get();
  if (bytes <= 0) return;
  Operation o{.label = Label::quantise};
  o.work = Kernel{.work = {.kind = WorkKind::quantise,
                           .bytes_read = elements * bytes / 2,
                           .bytes_written = elements * bytes / 2},
                  .library = stack_.kernels.stream_library()};
  s.operations.push_back(o);
}

}  // namespace orrery
