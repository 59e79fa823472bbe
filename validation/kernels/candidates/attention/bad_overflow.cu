// SPDX-License-Identifier: Apache-2.0
// Wrong: exponentials of whole scores, which overflow.
#include "candidate.cuh"

// A block a query and head: scores of all keys that it sees in shared memory, then their mean of
// the values.
__global__ void attend(const bf16* q, const bf16* k, const bf16* v, bf16* o, int heads,
                       int kv_heads, int queries, int keys, int dim, int causal) {
  SHARED(float, share);
  const long long query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  const int visible = causal ? static_cast<int>(query) + keys - queries + 1 : keys;
  const long long row = ((batch * queries + query) * heads + head) * dim;
  const long long first = (batch * keys * kv_heads + head / (heads / kv_heads)) * dim;
  const long long step = static_cast<long long>(kv_heads) * dim;
  const float scale = rsqrtf(static_cast<float>(dim));
  float most = -INFINITY;
  for (int j = threadIdx.x; j < visible; j += blockDim.x) {
    float score = 0;
    for (int c = 0; c < dim; ++c) score += to_float(q[row + c]) * to_float(k[first + j * step + c]);
    share[j] = score * scale;
    most = fmaxf(most, share[j]);
  }
  most = block_max(most);
  float sum = 0;
  for (int j = threadIdx.x; j < visible; j += blockDim.x) {
    share[j] = __expf(share[j]);
    sum += share[j];
  }
  sum = block_sum(sum);
  for (int c = threadIdx.x; c < dim; c += blockDim.x) {
    float value = 0;
    for (int j = 0; j < visible; ++j) value += share[j] * to_float(v[first + j * step + c]);
    o[row + c] = to_bf16(value / sum);
  }
}

extern "C" int launch(const void* const* in, void* const* out, const long long* size,
                      void* stream) {
  const int bytes = static_cast<int>(size[4] * 4);
  ALLOW_SHARED(attend, bytes);
  LAUNCH(attend, dim3(size[3], size[1], size[0]), 128, bytes, stream,
         static_cast<const bf16*>(in[0]), static_cast<const bf16*>(in[1]),
         static_cast<const bf16*>(in[2]), static_cast<bf16*>(out[0]), static_cast<int>(size[1]),
         static_cast<int>(size[2]), static_cast<int>(size[3]), static_cast<int>(size[4]),
         static_cast<int>(size[5]), static_cast<int>(size[6]));
  return LAUNCHED();
}
