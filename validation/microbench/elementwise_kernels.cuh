// Knows the kernels that treat each number by itself, and sums over all of them.
#pragma once

#include "kernels.cuh"

namespace bench {

constexpr unsigned threads = 256;
constexpr int unroll = 4;  // vectors of eight numbers in flight a thread
constexpr unsigned per_block = threads * unroll;

// Loads all vectors of a thread before it uses the first.
template <int Inputs>
struct Held {
  uint4 of[unroll][Inputs];
};
template <int Inputs>
struct Sources {
  const uint4* of[Inputs];
};
template <int Inputs, class Use>
__device__ inline void stream(Sources<Inputs> in, std::uint64_t count, Use use) {
  const std::uint64_t first = blockIdx.x * static_cast<std::uint64_t>(per_block) + threadIdx.x;
  Held<Inputs> held;
#pragma unroll
  for (int j = 0; j < unroll; ++j)
#pragma unroll
    for (int k = 0; k < Inputs; ++k)
      if (first + j * threads < count) held.of[j][k] = in.of[k][first + j * threads];
#pragma unroll
  for (int j = 0; j < unroll; ++j)
    if (first + j * threads < count) use(first + j * threads, held.of[j]);
}

__global__ void __launch_bounds__(threads)
    add_kernel(const uint4* a, const uint4* b, uint4* out, std::uint64_t count) {
  stream<2>({a, b}, count, [&](std::uint64_t i, const uint4* in) {
    Float8 x = unpack(in[0]);
    const Float8 y = unpack(in[1]);
    for (int e = 0; e < 8; ++e) x.v[e] += y.v[e];
    out[i] = pack(x);
  });
}

// By the fast division: the exact one costs more than all else of a kernel.
__device__ inline float sigmoid(float x) { return __fdividef(1, 1 + __expf(-x)); }

__global__ void __launch_bounds__(threads)
    swiglu_forward(const uint4* gate, const uint4* up, uint4* out, std::uint64_t count) {
  stream<2>({gate, up}, count, [&](std::uint64_t i, const uint4* in) {
    Float8 g = unpack(in[0]);
    const Float8 u = unpack(in[1]);
    for (int e = 0; e < 8; ++e) g.v[e] *= sigmoid(g.v[e]) * u.v[e];
    out[i] = pack(g);
  });
}
__global__ void __launch_bounds__(threads)
    swiglu_backward(const uint4* gate, const uint4* up, const uint4* slope, uint4* gate_slope,
                    uint4* up_slope, std::uint64_t count) {
  stream<3>({gate, up, slope}, count, [&](std::uint64_t i, const uint4* in) {
    Float8 g = unpack(in[0]), u = unpack(in[1]);
    const Float8 d = unpack(in[2]);
    for (int e = 0; e < 8; ++e) {
      const float s = sigmoid(g.v[e]), silu = g.v[e] * s;
      g.v[e] = d.v[e] * u.v[e] * (s + silu * (1 - s));
      u.v[e] = d.v[e] * silu;
    }
    gate_slope[i] = pack(g);
    up_slope[i] = pack(u);
  });
}

constexpr int head_dim = 128;

// Turns each head's first half against its second, in place; a block a token. The table holds
// cosines, then sines, of a token's 64 angles.
__global__ void __launch_bounds__(threads)
    rotary_kernel(uint4* q, uint4* k, const float* table, int q_heads, int k_heads) {
  constexpr int parts = head_dim / 16;  // vectors of half a head
  const int part = static_cast<int>(threadIdx.x) % parts;
  float c[8], s[8];
  const float* angle = table + static_cast<std::uint64_t>(blockIdx.x) * head_dim + part * 8;
  for (int e = 0; e < 8; ++e) c[e] = angle[e], s[e] = angle[head_dim / 2 + e];
  const int heads = q_heads + k_heads;
#pragma unroll 2
  for (int head = static_cast<int>(threadIdx.x) / parts; head < heads;
       head += static_cast<int>(threads) / parts) {
    uint4* at =
        head < q_heads
            ? q + (static_cast<std::uint64_t>(blockIdx.x) * q_heads + head) * 2 * parts
            : k + (static_cast<std::uint64_t>(blockIdx.x) * k_heads + head - q_heads) * 2 * parts;
    Float8 x = unpack(at[part]), y = unpack(at[part + parts]);
    for (int e = 0; e < 8; ++e) {
      const float first = x.v[e];
      x.v[e] = first * c[e] - y.v[e] * s[e];
      y.v[e] = y.v[e] * c[e] + first * s[e];
    }
    at[part] = pack(x);
    at[part + parts] = pack(y);
  }
}

// The scale is known beforehand (a static one, or the last step's).
__global__ void __launch_bounds__(threads)
    quantise_kernel(const uint4* in, const float* high, uint2* out, std::uint64_t count) {
  const float scale = 448.0f / *high;
  stream<1>({in}, count,
            [&](std::uint64_t i, const uint4* v) { out[i] = pack_fp8(unpack(v[0]), scale); });
}
// Greatest magnitude, by atomics on the bits: positive floats keep their order as integers.
__global__ void __launch_bounds__(threads)
    magnitude_kernel(const uint4* in, float* high, std::uint64_t count) {
  float top = 0;
  stream<1>({in}, count, [&](std::uint64_t, const uint4* v) {
    const Float8 x = unpack(v[0]);
    for (int e = 0; e < 8; ++e) top = fmaxf(top, fabsf(x.v[e]));
  });
  top = block_reduce<threads / 32, 0, true>(top);
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(high), __float_as_int(top));
}

__global__ void __launch_bounds__(threads)
    squares_kernel(const uint4* in, float* total, std::uint64_t count) {
  float sum = 0;
  stream<1>({in}, count, [&](std::uint64_t, const uint4* v) {
    const Float8 x = unpack(v[0]);
    for (int e = 0; e < 8; ++e) sum += x.v[e] * x.v[e];
  });
  sum = block_reduce<threads / 32, 0>(sum);
  if (threadIdx.x == 0) atomicAdd(total, sum);
}

// Four numbers a vector: 16 byte stores of neighbouring threads must touch.
__global__ void __launch_bounds__(threads)
    widen_kernel(const uint2* in, float4* out, std::uint64_t count) {
  const std::uint64_t first = blockIdx.x * static_cast<std::uint64_t>(per_block) + threadIdx.x;
  uint2 held[unroll];
#pragma unroll
  for (int j = 0; j < unroll; ++j)
    if (first + j * threads < count) held[j] = in[first + j * threads];
#pragma unroll
  for (int j = 0; j < unroll; ++j)
    if (first + j * threads < count)
      out[first + j * threads] = {
          __uint_as_float(held[j].x << 16), __uint_as_float(held[j].x & 0xffff0000u),
          __uint_as_float(held[j].y << 16), __uint_as_float(held[j].y & 0xffff0000u)};
}
__global__ void __launch_bounds__(threads)
    narrow_kernel(const float4* in, uint2* out, std::uint64_t count) {
  const auto* bits = reinterpret_cast<const uint4*>(in);
  stream<1>({bits}, count, [&](std::uint64_t i, const uint4* v) {
    out[i] = {pack2(__uint_as_float(v->x), __uint_as_float(v->y)),
              pack2(__uint_as_float(v->z), __uint_as_float(v->w))};
  });
}

struct Four {
  float v[4];
};
__device__ inline Four load4(const float* p, std::uint64_t i) {
  const float4 x = reinterpret_cast<const float4*>(p)[i];
  return {x.x, x.y, x.z, x.w};
}
__device__ inline Four load4(const bf16* p, std::uint64_t i) {
  const uint2 x = reinterpret_cast<const uint2*>(p)[i];
  return {__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u),
          __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u)};
}
__device__ inline void store4(float* p, std::uint64_t i, const Four& x) {
  reinterpret_cast<float4*>(p)[i] = {x.v[0], x.v[1], x.v[2], x.v[3]};
}
__device__ inline void store4(bf16* p, std::uint64_t i, const Four& x) {
  reinterpret_cast<uint2*>(p)[i] = {pack2(x.v[0], x.v[1]), pack2(x.v[2], x.v[3])};
}

struct Adam {
  float rate = 1e-4f, beta1 = 0.9f, beta2 = 0.95f, decay = 0.1f, epsilon = 1e-8f;
  float correction1 = 10.0f, correction2 = 20.0f;  // 1 / (1 - beta^step) of the first step
};

// AdamW over numbers of `State` (parameter and both moments) with gradients of `Slope`; with Copy,
// the bf16 parameters that the model uses are written as well. Four numbers a thread and vector.
template <class State, class Slope, bool Copy>
__global__ void __launch_bounds__(threads) adam_kernel(State* p, State* m, State* v, const Slope* g,
                                                       bf16* copy, Adam adam, std::uint64_t count) {
  constexpr int vectors = 2;
  const std::uint64_t first =
      blockIdx.x * static_cast<std::uint64_t>(threads * vectors) + threadIdx.x;
  Four held[vectors][4];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const std::uint64_t i = first + j * threads;
    if (i >= count) continue;
    held[j][0] = load4(p, i), held[j][1] = load4(m, i);
    held[j][2] = load4(v, i), held[j][3] = load4(g, i);
  }
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const std::uint64_t i = first + j * threads;
    if (i >= count) continue;
    Four &x = held[j][0], &mean = held[j][1], &square = held[j][2];
    for (int e = 0; e < 4; ++e) {
      const float slope = held[j][3].v[e];
      mean.v[e] = adam.beta1 * mean.v[e] + (1 - adam.beta1) * slope;
      square.v[e] = adam.beta2 * square.v[e] + (1 - adam.beta2) * slope * slope;
      const float root = sqrtf(square.v[e] * adam.correction2) + adam.epsilon;
      x.v[e] -= adam.rate * (mean.v[e] * adam.correction1 / root + adam.decay * x.v[e]);
    }
    store4(p, i, x), store4(m, i, mean), store4(v, i, square);
    if constexpr (Copy) store4(copy, i, x);
  }
}

}  // namespace bench
