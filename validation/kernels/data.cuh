// SPDX-License-Identifier: Apache-2.0
// Knows the operations' tensors by their sizes, and the data of each kind that they are filled
// with.
#pragma once

#include <string>
#include <vector>

#include "backend.cuh"
#include "numbers.cuh"

enum class Op { product, grouped_product, attention, rms_norm, softmax, top_k, quantise };
enum class Kind { random, wide, cancelling, denormal, outlier, equal, masked };

constexpr int op_count = 7;
inline std::string name_of(Op op) {
  static const char* const names[] = {"product", "grouped-product", "attention", "rms-norm",
                                      "softmax", "top-k",           "quantise"};
  return names[static_cast<int>(op)];
}
inline bool op_of(const std::string& name, Op& op) {
  for (int i = 0; i < op_count; ++i)
    if (name == name_of(static_cast<Op>(i))) return op = static_cast<Op>(i), true;
  return false;
}
inline bool kind_of(const std::string& name, Kind& kind) {
  static const char* const names[] = {"random",  "wide",  "cancelling", "denormal",
                                      "outlier", "equal", "masked"};
  for (int i = 0; i < 7; ++i)
    if (name == names[i]) return kind = static_cast<Kind>(i), true;
  return false;
}

enum class Holds { bf16, float32, int32, fp8, starts };  // starts: where each group's rows begin
struct Tensor {
  Holds holds;
  long long count, last;  // elements; along the last axis
  std::size_t bytes() const {
    return static_cast<std::size_t>(count) * (holds == Holds::bf16  ? 2u
                                              : holds == Holds::fp8 ? 1u
                                                                    : 4u);
  }
};
struct Tensors {
  std::vector<Tensor> in, out;
};
constexpr int sizes_of(Op op) {  // how many sizes an operation has
  return op == Op::attention                    ? 7
         : op == Op::grouped_product            ? 4
         : op == Op::product || op == Op::top_k ? 3
                                                : 2;
}
constexpr long long quantise_block = 128;
BOTH long long blocks_of(long long width) { return (width + quantise_block - 1) / quantise_block; }

// Sizes: product m n k; grouped-product rows n k groups; attention batch heads kv_heads queries
// keys dim causal; rms-norm, softmax, quantise rows width; top-k rows width k.
inline Tensors tensors_of(Op op, const long long* s) {
  const Holds b = Holds::bf16;
  switch (op) {
    case Op::product:
      return {{{b, s[0] * s[2], s[2]}, {b, s[1] * s[2], s[2]}}, {{b, s[0] * s[1], s[1]}}};
    case Op::grouped_product:
      return {
          {{b, s[0] * s[2], s[2]}, {b, s[3] * s[1] * s[2], s[2]}, {Holds::starts, s[3] + 1, s[0]}},
          {{b, s[0] * s[1], s[1]}}};
    case Op::attention: {
      const long long q = s[0] * s[3] * s[1] * s[5], k = s[0] * s[4] * s[2] * s[5];
      return {{{b, q, s[5]}, {b, k, s[5]}, {b, k, s[5]}}, {{b, q, s[5]}}};
    }
    case Op::rms_norm:
      return {{{b, s[0] * s[1], s[1]}, {b, s[1], s[1]}}, {{b, s[0] * s[1], s[1]}}};
    case Op::softmax:
      return {{{b, s[0] * s[1], s[1]}}, {{b, s[0] * s[1], s[1]}}};
    case Op::top_k:
      return {{{Holds::float32, s[0] * s[1], s[1]}},
              {{Holds::float32, s[0] * s[2], s[2]}, {Holds::int32, s[0] * s[2], s[2]}}};
    case Op::quantise:
      return {{{b, s[0] * s[1], s[1]}},
              {{Holds::fp8, s[0] * s[1], s[1]},
               {Holds::float32, s[0] * blocks_of(s[1]), blocks_of(s[1])}}};
  }
  return {};
}

// One number of a tensor. Each kind is where another mistake shows.
BOTH float datum(Kind kind, std::uint64_t seed, int tensor, long long place, long long last) {
  const std::uint64_t stream = seed ^ (static_cast<std::uint64_t>(tensor + 1) << 56);
  const std::uint64_t bits = drawn(stream, static_cast<std::uint64_t>(place));
  const float normal = normal_of(bits);
  const std::uint64_t more = drawn(stream ^ 0x5bd1e995, static_cast<std::uint64_t>(place));
  switch (kind) {
    case Kind::random:
      return normal;
    case Kind::wide:  // 24 powers of two
      return ldexpf(normal, static_cast<int>(more % 25) - 12);
    case Kind::cancelling: {  // neighbours of the first tensor add up to nothing but for the last
      const long long at = place % last;
      if (at >= last - last / 16 - 1) return normal / 16;
      const float pair = normal_of(drawn(stream, static_cast<std::uint64_t>(place - at % 2)));
      return tensor == 0 && at % 2 == 1 ? -8 * pair : 8 * pair;
    }
    case Kind::denormal:  // half of them below the least normal number
      return more % 2 == 0 ? normal : ldexpf(normal, -130);
    case Kind::outlier:  // one in a thousand is huge
      return more % 1024 == 0 ? 16384 * normal : normal;
    case Kind::equal:
      return normal_of(drawn(stream, 0)) + (drawn(stream, 0) & 1 ? 1.0f : -1.0f);
    case Kind::masked:  // one in four is minus infinity, the first of a row never
      return place % last != 0 && more % 4 == 0 ? -INFINITY : normal;
  }
  return 0;
}
// Where the rows of group `place` begin, of `rows` in `groups`.
BOTH int start_of(Kind kind, std::uint64_t seed, long long place, long long groups,
                  long long rows) {
  if (place <= 0) return 0;
  if (place >= groups) return static_cast<int>(rows);
  if (kind == Kind::equal) return place <= groups / 2 ? 0 : static_cast<int>(rows);
  const double at = static_cast<double>(place) +
                    share_of(drawn(seed ^ 0x517cc1b7, static_cast<std::uint64_t>(place))) - 0.5;
  return static_cast<int>(at * static_cast<double>(rows) / static_cast<double>(groups));
}

// The bits that element `place` of an input holds, in the low bytes.
BOTH std::uint32_t bits_at(const Tensor& tensor, Kind kind, std::uint64_t seed, int number,
                           long long place) {
  if (tensor.holds == Holds::starts)
    return static_cast<std::uint32_t>(start_of(kind, seed, place, tensor.count - 1, tensor.last));
  const float value = datum(kind, seed, number, place, tensor.last);
  return tensor.holds == Holds::bf16 ? bf16_bits(value) : bits_of(value);
}
BOTH std::uint32_t stored_at(const Tensor& tensor, const unsigned char* data, long long place) {
  if (tensor.holds == Holds::fp8) return data[place];
  if (tensor.holds == Holds::bf16) return reinterpret_cast<const std::uint16_t*>(data)[place];
  return reinterpret_cast<const std::uint32_t*>(data)[place];
}

inline void fill(const Tensor& tensor, Kind kind, std::uint64_t seed, int number,
                 unsigned char* data) {
  device::each(tensor.count, [=] ON_DEVICE(long long i) {
    const std::uint32_t bits = bits_at(tensor, kind, seed, number, i);
    if (tensor.holds == Holds::bf16)
      reinterpret_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(bits);
    else
      reinterpret_cast<std::uint32_t*>(data)[i] = bits;
  });
}
// How many elements are no longer what they were filled with.
inline void count_changed(const Tensor& tensor, Kind kind, std::uint64_t seed, int number,
                          const unsigned char* data, unsigned long long* changed) {
  device::each(tensor.count, [=] ON_DEVICE(long long i) {
    if (stored_at(tensor, data, i) != bits_at(tensor, kind, seed, number, i))
      device::count_one(changed);
  });
}
// Outputs are poisoned with ones in every bit: no number in any of their formats.
inline void count_poisoned(const Tensor& tensor, const unsigned char* data,
                           unsigned long long* left) {
  const std::uint32_t poison = tensor.holds == Holds::fp8    ? 0xffu
                               : tensor.holds == Holds::bf16 ? 0xffffu
                                                             : 0xffffffffu;
  device::each(tensor.count, [=] ON_DEVICE(long long i) {
    if (stored_at(tensor, data, i) == poison) device::count_one(left);
  });
}
// Between tensors lie bytes that nobody may touch.
BOTH unsigned char guard_byte(std::uint64_t seed, long long place) {
  return static_cast<unsigned char>(drawn(seed ^ 0xa5a5a5a5, static_cast<std::uint64_t>(place)));
}
inline void fill_guard(std::uint64_t seed, unsigned char* data, std::size_t bytes) {
  device::each(static_cast<long long>(bytes),
               [=] ON_DEVICE(long long i) { data[i] = guard_byte(seed, i); });
}
inline void count_broken(std::uint64_t seed, const unsigned char* data, std::size_t bytes,
                         unsigned long long* broken) {
  device::each(static_cast<long long>(bytes), [=] ON_DEVICE(long long i) {
    if (data[i] != guard_byte(seed, i)) device::count_one(broken);
  });
}
