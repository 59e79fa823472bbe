// SPDX-License-Identifier: Apache-2.0
// Knows the true value of each element in double precision, and how far rounding may lead from it.
// docs/kernels.md derives the tolerances.
#pragma once

#include "data.cuh"

struct Problem {
  Op op;
  bool correlated;  // data so regular that rounding errors need not average out
  long long size[8];
  const unsigned char *in[3], *out[2];
};
struct Judged {
  double got = 0, want = 0, tolerance = 0;
  double ratio = 0;  // error over tolerance; 1 or less is right
};

constexpr double unit_bf16 = 0x1p-8, unit_fp32 = 0x1p-24;
constexpr double flush = 0x1p-126;  // units may take what lies below for nothing

// Relative to the sum of sizes: n terms added in fp32. Rounding errors of a sum grow with the root
// of n (Higham and Mary 2019); tensor units cut off in place of rounding, once every 16 terms or so
// (Fasi, Higham, Mikaitis, Pranesh 2021), which adds up: n/16 steps of two units.
BOTH double growth(double n) { return unit_fp32 * (8 * sqrt(n) + n / 8); }

BOTH double at16(const unsigned char* data, long long i) {
  return bf16_value(reinterpret_cast<const std::uint16_t*>(data)[i]);
}
BOTH double at32(const unsigned char* data, long long i) {
  return reinterpret_cast<const float*>(data)[i];
}

BOTH Judged judged(double got, double want, double tolerance) {
  Judged out{got, want, tolerance, 0};
  out.ratio = got == want ? 0 : fabs(got - want) / tolerance;
  if (!(out.ratio < 1e30)) out.ratio = 1e30;  // no number
  return out;
}

BOTH Judged judge_dot(double got, const unsigned char* a, long long i, const unsigned char* b,
                      long long j, long long k) {
  double sum = 0, size = 0, sizes = 0;
  for (long long at = 0; at < k; ++at) {
    const double x = at16(a, i + at), y = at16(b, j + at);
    sum += x * y;
    size += fabs(x * y);
    sizes += fabs(x) + fabs(y) + 1;
  }
  return judged(
      got, sum,
      unit_bf16 * fabs(sum) + growth(static_cast<double>(k)) * size + flush * (sizes + 1));
}

BOTH Judged judge_grouped(const Problem& p, long long element) {
  const long long n = p.size[1], k = p.size[2], row = element / n, column = element % n;
  const int* starts = reinterpret_cast<const int*>(p.in[2]);
  long long group = 0;
  while (starts[group + 1] <= row) ++group;
  return judge_dot(at16(p.out[0], element), p.in[0], row * k, p.in[1], (group * n + column) * k, k);
}

// Of attention's two passes over the keys that a query sees.
struct Scores {
  const Problem& p;
  long long query = 0, key = 0, step = 0, keys = 0, dim = 0;
  BOTH Scores(const Problem& problem, long long element) : p(problem) {
    const long long heads = p.size[1], kv_heads = p.size[2], queries = p.size[3];
    keys = p.size[4], dim = p.size[5];
    const long long row = element / dim, head = row % heads, at = row / heads % queries;
    const long long batch = row / heads / queries, all = keys;
    query = row * dim;
    step = kv_heads * dim;
    key = (batch * all * kv_heads + head / (heads / kv_heads)) * dim;
    // The last query sees all keys.
    if (p.size[6] != 0) keys = at + all - queries + 1;
  }
  BOTH double of(long long j, double& size) const {
    double sum = 0;
    size = 0;
    for (long long c = 0; c < dim; ++c) {
      const double product = at16(p.in[0], query + c) * at16(p.in[1], key + j * step + c);
      sum += product;
      size += fabs(product);
    }
    const double scale = 1 / sqrt(static_cast<double>(dim));
    size *= scale;
    return sum * scale;
  }
};

BOTH Judged judge_attention(const Problem& p, long long element) {
  const Scores scores(p, element);
  const long long column = element % scores.dim;
  double most = -1e300, size = 0;
  for (long long j = 0; j < scores.keys; ++j) most = fmax(most, scores.of(j, size));
  double weight = 0, sum = 0, sizes = 0, squares = 0, off = 0, off_weight = 0, values = 0;
  const double per_score = growth(static_cast<double>(scores.dim));
  for (long long j = 0; j < scores.keys; ++j) {
    const double s = scores.of(j, size), share = exp(s - most);
    const double value = at16(p.in[2], scores.key + j * scores.step + column);
    // The score's own error, then that of its exponential.
    const double error = per_score * size + unit_fp32 * (4 * (most - s) + 4 * fabs(s) + 8);
    weight += share;
    sum += share * value;
    sizes += share * fabs(value);
    squares += share * value * share * value;
    off += share * fabs(value) * error;
    off_weight += share * error;
    values += fabs(value);
  }
  const double want = sum / weight;
  // Shares are rounded to 16 bits before they meet the values.
  const double shares = p.correlated ? sizes : fmin(sizes, 4 * sqrt(squares));
  const double tolerance =
      unit_bf16 * (fabs(want) + shares / weight) + off / weight +
      (off_weight / weight + growth(static_cast<double>(scores.keys))) * (fabs(want)) +
      growth(static_cast<double>(scores.keys)) * sizes / weight + flush * (values + 1);
  return judged(at16(p.out[0], element), want, tolerance);
}

constexpr double norm_epsilon = 1e-5;
BOTH Judged judge_norm(const Problem& p, long long element) {
  const long long width = p.size[1], row = element / width * width;
  double squares = 0;
  for (long long i = 0; i < width; ++i) squares += at16(p.in[0], row + i) * at16(p.in[0], row + i);
  const double root = 1 / sqrt(squares / static_cast<double>(width) + norm_epsilon);
  const double x = at16(p.in[0], element), w = at16(p.in[1], element - row), want = x * root * w;
  const double relative = unit_bf16 + growth(static_cast<double>(width)) + 6 * unit_fp32;
  return judged(at16(p.out[0], element), want,
                relative * fabs(want) + flush * (1 + root * (fabs(w) + fabs(x))));
}

BOTH Judged judge_softmax(const Problem& p, long long element) {
  const long long width = p.size[1], row = element / width * width;
  double most = -1e300, sum = 0;
  for (long long i = 0; i < width; ++i) most = fmax(most, at16(p.in[0], row + i));
  for (long long i = 0; i < width; ++i) sum += exp(at16(p.in[0], row + i) - most);
  const double x = at16(p.in[0], element);
  if (x < -1e38) return judged(at16(p.out[0], element), 0, flush);
  const double want = exp(x - most) / sum;
  const double relative = unit_bf16 + growth(static_cast<double>(width)) +
                          unit_fp32 * (4 * (most - x) + 4 * (fabs(most) + fabs(x)) + 8);
  return judged(at16(p.out[0], element), want, relative * want + flush);
}

// Exact: the j-th largest value, where it stands, and each place once.
BOTH Judged judge_top(const Problem& p, long long element) {
  const long long width = p.size[1], k = p.size[2], row = element / k, j = element % k;
  const double got = at32(p.out[0], element);
  const int* places = reinterpret_cast<const int*>(p.out[1]) + row * k;
  const long long place = places[j];
  long long above = 0, equal = 0;
  for (long long i = 0; i < width; ++i) {
    const double x = at32(p.in[0], row * width + i);
    above += x > got;
    equal += x == got;
  }
  bool right = place >= 0 && place < width && above <= j && j < above + equal;
  right = right && at32(p.in[0], row * width + place) == got;
  for (long long i = 0; i < j; ++i) right = right && places[i] != place;
  Judged out{got, static_cast<double>(j), 0, right ? 0.0 : 1e30};
  return out;
}

// Blocks of 128 along a row, the last may be shorter: scale = largest size / 448, at least 1e-30 /
// 448; an element is the number of e4m3 nearest to x / scale.
BOTH Judged judge_quantise(const Problem& p, long long element) {
  const long long width = p.size[1], row = element / width, at = element % width;
  const long long block = at / quantise_block, from = block * quantise_block;
  const long long to = from + quantise_block < width ? from + quantise_block : width;
  double most = 1e-30;
  for (long long i = from; i < to; ++i) most = fmax(most, fabs(at16(p.in[0], row * width + i)));
  const double scale = at32(p.out[1], row * blocks_of(width) + block), true_scale = most / fp8_most;
  const Judged of_scale = judged(scale, true_scale, 4 * unit_fp32 * true_scale);
  if (of_scale.ratio > 1) return of_scale;
  const double want = at16(p.in[0], element) / scale, got = fp8_value(p.out[0][element]);
  int exponent = -100;
  if (want != 0) frexp(want, &exponent);
  const double spacing = ldexp(1.0, (exponent - 1 > -6 ? exponent - 1 : -6) - 3);
  return judged(got, want, spacing / 2 + 8 * unit_fp32 * fabs(want) + 1e-12);
}

BOTH Judged judge_element(const Problem& p, long long element) {
  switch (p.op) {
    case Op::product: {
      const long long n = p.size[1], k = p.size[2];
      return judge_dot(at16(p.out[0], element), p.in[0], element / n * k, p.in[1], element % n * k,
                       k);
    }
    case Op::grouped_product:
      return judge_grouped(p, element);
    case Op::attention:
      return judge_attention(p, element);
    case Op::rms_norm:
      return judge_norm(p, element);
    case Op::softmax:
      return judge_softmax(p, element);
    case Op::top_k:
      return judge_top(p, element);
    case Op::quantise:
      return judge_quantise(p, element);
  }
  return {};
}

// Which elements are looked at: of each problem the first `count` of `all`, or drawn ones.
struct Looked {
  long long count, all;
  bool drawing;
  std::uint64_t draw;
  BOTH long long element(long long i) const {
    const long long at = i % count;
    return drawing ? static_cast<long long>(drawn(draw, static_cast<std::uint64_t>(i)) %
                                            static_cast<std::uint64_t>(all))
                   : at;
  }
};
// Error over tolerance of the elements of each problem, one after another.
inline void compare(const Problem* problems, long long number, const Looked& looked, double* to) {
  const Looked which = looked;
  device::each(number * looked.count, [=] ON_DEVICE(long long i) {
    to[i] = judge_element(problems[i / which.count], which.element(i)).ratio;
  });
}
inline void judge_one(const Problem& problem, long long element, Judged* to) {
  device::each(1, [=] ON_DEVICE(long long) { *to = judge_element(problem, element); });
}
// A fixed piece of work, whose time tells whether the device is free.
inline void keep_busy(double* to, long long count) {
  device::each(count, [=] ON_DEVICE(long long i) {
    double x = static_cast<double>(i);
    for (int step = 0; step < 200; ++step) x = x * 0.999 + 1;
    to[i] = x;
  });
}
