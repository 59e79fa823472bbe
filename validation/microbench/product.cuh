// Knows how one matrix product is asked of cuBLASLt, and how its result is checked.
#pragma once

#include <cublasLt.h>

#include <optional>

#include "bench.cuh"
#include "random.cuh"

namespace bench {

#define BLAS_OK(call) ::bench::blas_ok((call), #call, __FILE__, __LINE__)
inline void blas_ok(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s:%d: %s: status %d\n", file, line, call, static_cast<int>(status));
  std::exit(1);
}

enum class Number { bf16, fp16, fp8, int8, fp4, fp32, int32 };

// Orrery has no name for 32-bit whole numbers: they are as wide as fp32.
inline const char* name_of(Number number) {
  constexpr const char* names[] = {"bf16", "fp16", "fp8", "int8", "fp4", "fp32", "fp32"};
  return names[static_cast<int>(number)];
}
inline int bits_of(Number number) {
  constexpr int bits[] = {16, 16, 8, 8, 4, 32, 32};
  return bits[static_cast<int>(number)];
}
inline cudaDataType_t cuda_type(Number number) {
  constexpr cudaDataType_t types[] = {CUDA_R_16BF,    CUDA_R_16F, CUDA_R_8F_E4M3, CUDA_R_8I,
                                      CUDA_R_4F_E2M1, CUDA_R_32F, CUDA_R_32I};
  return types[static_cast<int>(number)];
}
inline std::uint64_t bytes_of(Number number, std::int64_t count) {
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(bits_of(number)) / 8;
}

// out[m, n] = sum over k of left and right, `groups` times; all arrays row by row without gaps.
struct Product {
  Number input = Number::bf16, output = Number::bf16;
  std::int64_t m = 0, n = 0, k = 0, groups = 1;
  bool left_by_k = false;       // left is stored [k, m], not [m, k]
  bool right_by_k = false;      // right is stored [k, n], not [n, k] as weights are
  bool accumulate = false;      // the result is added to what `out` holds
  bool fast_accumulate = true;  // fp8: sums of limited width inside the tensor unit

  double flop() const { return 2.0 * double(m) * double(n) * double(k) * double(groups); }
  std::uint64_t left_bytes() const { return bytes_of(input, m * k * groups); }
  std::uint64_t right_bytes() const { return bytes_of(input, n * k * groups); }
  std::uint64_t out_bytes() const { return bytes_of(output, m * n * groups); }
};

// The library's handle and workspace; what block-scaled formats scale by (ones).
class Blas {
 public:
  static constexpr std::uint64_t workspace_bytes = 64ull << 20;
  explicit Blas(std::uint64_t scale_bytes)
      : workspace(workspace_bytes), one(1), scales(std::max<std::uint64_t>(256, scale_bytes)) {
    BLAS_OK(cublasLtCreate(&handle));
    const float value = 1;
    CUDA_OK(cudaMemcpy(one.get(), &value, sizeof value, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(scales.get(), 0x38, scales.bytes()));  // 1 as unsigned e4m3
  }
  ~Blas() { cublasLtDestroy(handle); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  static std::string version() { return library_version(cublasLtGetVersion()); }

  cublasLtHandle_t handle = nullptr;
  Buffer<std::uint8_t> workspace;
  Buffer<float> one;
  Buffer<std::uint8_t> scales;
};

// A product with the library's first choice of algorithm, as frameworks run it.
//
// The library counts by columns: our out[m, n] is its n x m result, so its A is our right operand
// and its B our left one.
class PlannedProduct {
 public:
  PlannedProduct(const Blas& blas, const Product& product) : blas_(blas), product_(product) {
    const Product& p = product;
    const bool whole = p.input == Number::int8;
    BLAS_OK(cublasLtMatmulDescCreate(&operation_, whole ? CUBLAS_COMPUTE_32I : CUBLAS_COMPUTE_32F,
                                     whole ? CUDA_R_32I : CUDA_R_32F));
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.right_by_k ? CUBLAS_OP_N : CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.left_by_k ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (p.input == Number::fp8) {
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(p.fast_accumulate));
      set_scales(blas.one.get(), blas.one.get());
    }
    if (p.input == Number::fp4) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
      set_scales(blas.scales.get(), blas.scales.get());
    }
    right_ = p.right_by_k ? layout(p.input, p.n, p.k) : layout(p.input, p.k, p.n);
    left_ = p.left_by_k ? layout(p.input, p.m, p.k) : layout(p.input, p.k, p.m);
    out_ = layout(p.output, p.n, p.m);
    choose();
  }
  ~PlannedProduct() {
    cublasLtMatrixLayoutDestroy(right_);
    cublasLtMatrixLayoutDestroy(left_);
    cublasLtMatrixLayoutDestroy(out_);
    cublasLtMatmulDescDestroy(operation_);
  }
  PlannedProduct(const PlannedProduct&) = delete;
  PlannedProduct& operator=(const PlannedProduct&) = delete;

  bool exists() const { return found_; }  // false: the library has no kernel for it

  // `scale_offset`: into the scales of block-scaled formats, so that these rotate with the data.
  void run(cudaStream_t stream, const void* left, const void* right, void* out,
           std::uint64_t scale_offset = 0) const {
    if (product_.input == Number::fp4) {
      const std::uint8_t* scales = blas_.scales.get() + scale_offset;
      set_scales(scales, scales + (product_.left_bytes() / 8 + 127) / 128 * 128);
    }
    // Whole-number products take whole-number factors of the same width.
    union {
      float real;
      std::int32_t whole;
    } alpha, beta;
    if (product_.input == Number::int8) {
      alpha.whole = 1;
      beta.whole = product_.accumulate;
    } else {
      alpha.real = 1;
      beta.real = product_.accumulate;
    }
    BLAS_OK(cublasLtMatmul(blas_.handle, operation_, &alpha, right, right_, left, left_, &beta, out,
                           out_, out, out_, &algorithm_, blas_.workspace.get(),
                           blas_.workspace_bytes, stream));
  }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t key, const Value& value) const {
    BLAS_OK(cublasLtMatmulDescSetAttribute(operation_, key, &value, sizeof value));
  }
  void set_scales(const void* left, const void* right) const {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, right);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, left);
  }
  cublasLtMatrixLayout_t layout(Number number, std::int64_t rows, std::int64_t columns) const {
    cublasLtMatrixLayout_t made = nullptr;
    BLAS_OK(cublasLtMatrixLayoutCreate(&made, cuda_type(number), static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), rows));
    if (product_.groups == 1) return made;
    const auto count = static_cast<std::int32_t>(product_.groups);
    const std::int64_t stride = rows * columns;
    BLAS_OK(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                             sizeof count));
    BLAS_OK(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                             &stride, sizeof stride));
    return made;
  }
  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    BLAS_OK(cublasLtMatmulPreferenceCreate(&preference));
    BLAS_OK(
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &blas_.workspace_bytes, sizeof blas_.workspace_bytes));
    cublasLtMatmulHeuristicResult_t result{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        blas_.handle, operation_, right_, left_, out_, out_, preference, 1, &result, &count);
    found_ = status == CUBLAS_STATUS_SUCCESS && count > 0 && result.state == CUBLAS_STATUS_SUCCESS;
    algorithm_ = result.algo;
    BLAS_OK(cublasLtMatmulPreferenceDestroy(preference));
  }

  const Blas& blas_;
  Product product_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t right_ = nullptr, left_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool found_ = false;
};

__device__ inline double element(const void* data, std::uint64_t i, Number number) {
  switch (number) {
    case Number::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case Number::fp16:
      return __half2float(static_cast<const __half*>(data)[i]);
    case Number::fp8:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
    case Number::int8:
      return static_cast<const std::int8_t*>(data)[i];
    case Number::fp4: {  // low half of a byte first; sign and one of eight magnitudes
      const int code = static_cast<const std::uint8_t*>(data)[i / 2] >> (4 * (i % 2)) & 15;
      const int size = code & 7;
      const double magnitude = size < 4 ? 0.5 * size : size < 6 ? size - 2.0 : 2.0 * size - 8.0;
      return code & 8 ? -magnitude : magnitude;
    }
    case Number::fp32:
      return static_cast<const float*>(data)[i];
    case Number::int32:
      return static_cast<const std::int32_t*>(data)[i];
  }
  return 0;
}

// Block b: element found and expected at a place of the result drawn by b.
static __global__ void check_product(Product p, const void* left, const void* right,
                                     const void* out, double* pairs) {
  __shared__ double sums[256];
  const auto at = [&](std::uint64_t draw, std::int64_t limit) {
    return static_cast<std::int64_t>(mix(3 * blockIdx.x + draw) %
                                     static_cast<std::uint64_t>(limit));
  };
  const std::int64_t group = at(0, p.groups), row = at(1, p.m), column = at(2, p.n);
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < p.k; i += blockDim.x) {
    const std::int64_t l = group * p.m * p.k + (p.left_by_k ? i * p.m + row : row * p.k + i);
    const std::int64_t r = group * p.n * p.k + (p.right_by_k ? i * p.n + column : column * p.k + i);
    sum += element(left, static_cast<std::uint64_t>(l), p.input) *
           element(right, static_cast<std::uint64_t>(r), p.input);
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < blockDim.x; ++i) sum += sums[i];
  const std::int64_t o = (group * p.m + row) * p.n + column;
  pairs[2 * blockIdx.x] = element(out, static_cast<std::uint64_t>(o), p.output);
  pairs[2 * blockIdx.x + 1] = sum;
}

// Relative error of 64 elements of a finished result, against sums in double precision.
inline double product_error(const Gpu& gpu, const Product& p, const void* left, const void* right,
                            const void* out) {
  constexpr unsigned places = 64;
  const Buffer<double> pairs(2 * places);
  check_product<<<places, 256, 0, gpu.stream>>>(p, left, right, out, pairs.get());
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaStreamSynchronize(gpu.stream));
  const std::vector<double> values = pairs.to_host(0, 2 * places);
  RelativeError error;
  for (unsigned i = 0; i < places; ++i) error.add(values[2 * i], values[2 * i + 1]);
  return error.value();
}

// Rounding of the result, and of sums inside the unit: the limit of a right product.
inline double error_limit(const Product& p) {
  if (p.input == Number::int8) return 0;
  if (p.input == Number::fp8 && p.fast_accumulate) return 0.05;
  return 0.01;
}

// Random operands that all products of a run slice theirs from, and room for results.
class OperandPool {
 public:
  // Takes at most these sizes, less where the device has little memory.
  OperandPool(std::uint64_t in_bytes, std::uint64_t out_bytes)
      : in_(share_of_free(in_bytes, 0.45)), out_(share_of_free(out_bytes, 0.6)) {}

  void fill(const Gpu& gpu, Number number) {
    CUDA_OK(cudaStreamSynchronize(gpu.stream));
    const std::uint64_t count = in_.bytes() * 8 / static_cast<std::uint64_t>(bits_of(number));
    void* data = in_.get();
    if (number == Number::bf16) randomise(static_cast<__nv_bfloat16*>(data), count, 1);
    if (number == Number::fp16) randomise(static_cast<__half*>(data), count, 2);
    if (number == Number::fp8) randomise(static_cast<__nv_fp8_e4m3*>(data), count, 3);
    if (number == Number::int8) randomise(static_cast<std::int8_t*>(data), count, 4);
    if (number == Number::fp4) random_bytes(in_.get(), in_.bytes(), 5);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
  }

  std::uint64_t in_bytes() const { return in_.bytes(); }
  std::uint64_t out_bytes() const { return out_.bytes(); }
  std::uint8_t* in() const { return in_.get(); }
  std::uint8_t* out() const { return out_.get(); }

  // Where call i finds its operands: enough sets that none is in the cache when its turn comes.
  struct Sets {
    std::uint64_t left = 0, right = 0, out = 0;  // rounded sizes
    std::uint64_t in_sets = 0, out_sets = 0;     // 0: does not fit
    std::uint64_t left_at(int i) const {
      return static_cast<std::uint64_t>(i) % in_sets * (left + right);
    }
    std::uint64_t right_at(int i) const { return left_at(i) + left; }
    std::uint64_t out_at(int i) const { return static_cast<std::uint64_t>(i) % out_sets * out; }
  };
  Sets sets(const Gpu& gpu, const Product& p) const {
    const auto rounded = [](std::uint64_t bytes) { return (bytes + 1023) / 1024 * 1024; };
    Sets s{rounded(p.left_bytes()), rounded(p.right_bytes()), rounded(p.out_bytes())};
    const std::uint64_t wanted = gpu.cold_bytes() / (s.left + s.right + s.out) + 2;
    s.in_sets = std::min(wanted, in_.bytes() / (s.left + s.right));
    s.out_sets = std::min(wanted, out_.bytes() / s.out);
    return s;
  }

 private:
  static std::uint64_t share_of_free(std::uint64_t wanted, double share) {
    std::size_t free = 0, total = 0;
    CUDA_OK(cudaMemGetInfo(&free, &total));
    return std::min(wanted,
                    static_cast<std::uint64_t>(share * static_cast<double>(free)) >> 20 << 20);
  }

  Buffer<std::uint8_t> in_, out_;
};

// Call i of a planned product on the pool's operands.
inline Enqueue calls_of(const PlannedProduct& plan, const OperandPool& pool,
                        const OperandPool::Sets& sets) {
  return [&plan, &pool, sets](cudaStream_t stream, int i) {
    plan.run(stream, pool.in() + sets.left_at(i), pool.in() + sets.right_at(i),
             pool.out() + sets.out_at(i), (sets.left_at(i) / 8 + 127) / 128 * 128);
  };
}

}  // namespace bench
