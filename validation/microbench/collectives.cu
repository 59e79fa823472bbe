// SPDX-License-Identifier: Apache-2.0
// Knows how to time NCCL collectives by size, group and protocol, in graphs and launched by a host.
#include <memory>
#include <string>

#include "bench.cuh"
#include "random.cuh"
#include "ranks.cuh"

namespace {

using bench::Rank;
using Element = __nv_bfloat16;

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;

struct Question {
  std::string kind, variant;
};
const std::vector<Question> questions = {
    {"all-reduce", ""}, {"all-gather", ""},          {"reduce-scatter", ""},   {"all-to-all", ""},
    {"broadcast", ""},  {"send-receive", "one-way"}, {"send-receive", "shift"}};

struct Member {  // one rank in one communicator
  const Rank& rank;
  const bench::Gpu& gpu;
  ncclComm_t comm;
  int members;
  Element *in, *out;
  bool inside() const { return comm != nullptr; }
};

// Bytes as NCCL counts them. Every part starts on 128 bytes.
std::uint64_t whole(std::uint64_t bytes, int members) {
  const std::uint64_t unit = 128 * static_cast<std::uint64_t>(members);
  return std::max(unit, bytes / unit * unit);
}

void enqueue(const Member& m, const Question& q, std::uint64_t bytes, cudaStream_t stream) {
  const std::size_t count = bytes / sizeof(Element);
  const int n = m.members, me = m.rank.index;
  const std::size_t part = count / static_cast<std::size_t>(n);
  if (q.kind == "all-reduce") {
    NCCL_OK(ncclAllReduce(m.in, m.out, count, ncclBfloat16, ncclSum, m.comm, stream));
  } else if (q.kind == "all-gather") {
    NCCL_OK(ncclAllGather(m.in, m.out, part, ncclBfloat16, m.comm, stream));
  } else if (q.kind == "reduce-scatter") {
    NCCL_OK(ncclReduceScatter(m.in, m.out, part, ncclBfloat16, ncclSum, m.comm, stream));
  } else if (q.kind == "broadcast") {
    NCCL_OK(ncclBroadcast(m.in, m.out, count, ncclBfloat16, 0, m.comm, stream));
  } else if (q.kind == "all-to-all") {
    NCCL_OK(ncclGroupStart());
    for (int peer = 0; peer < n; ++peer) {
      const std::size_t at = part * static_cast<std::size_t>(peer);
      NCCL_OK(ncclSend(m.in + at, part, ncclBfloat16, peer, m.comm, stream));
      NCCL_OK(ncclRecv(m.out + at, part, ncclBfloat16, peer, m.comm, stream));
    }
    NCCL_OK(ncclGroupEnd());
  } else if (q.variant == "shift") {
    NCCL_OK(ncclGroupStart());
    NCCL_OK(ncclSend(m.in, count, ncclBfloat16, (me + 1) % n, m.comm, stream));
    NCCL_OK(ncclRecv(m.out, count, ncclBfloat16, (me + n - 1) % n, m.comm, stream));
    NCCL_OK(ncclGroupEnd());
  } else if (me == 0) {
    NCCL_OK(ncclSend(m.in, count, ncclBfloat16, 1, m.comm, stream));
  } else {
    NCCL_OK(ncclRecv(m.out, count, ncclBfloat16, 0, m.comm, stream));
  }
}

// Small all-reduces: no rank begins before all have come, and hosts get ahead of their devices.
void gate(const Member& m, cudaStream_t stream) {
  for (int i = 0; i < 8; ++i)
    NCCL_OK(ncclAllReduce(m.in, m.out, 64, ncclBfloat16, ncclSum, m.comm, stream));
}

// What rank r's input holds at element i.
double input(int r, std::size_t i) {
  const float x = bench::normal(static_cast<std::uint64_t>(r + 1), i);
  return static_cast<double>(__bfloat162float(__float2bfloat16(x)));
}

double expected(const Member& m, const Question& q, std::size_t part, std::size_t i) {
  const int n = m.members, me = m.rank.index;
  const auto mine = static_cast<std::size_t>(me) * part;
  if (q.kind == "all-gather") return input(static_cast<int>(i / part), i % part);
  if (q.kind == "all-to-all") return input(static_cast<int>(i / part), mine + i % part);
  if (q.kind == "broadcast" || q.variant == "one-way") return input(0, i);
  if (q.variant == "shift") return input((me + n - 1) % n, i);
  double sum = 0;
  for (int r = 0; r < n; ++r) sum += input(r, q.kind == "reduce-scatter" ? mine + i : i);
  return sum;
}

// One call against sums on the host, over all elements of this rank's result.
double check(const Member& m, const Question& q, std::uint64_t bytes) {
  CUDA_OK(cudaMemsetAsync(m.out, 0xff, bytes, m.gpu.stream));  // NaN
  enqueue(m, q, bytes, m.gpu.stream);
  CUDA_OK(cudaStreamSynchronize(m.gpu.stream));
  if (q.variant == "one-way" && m.rank.index == 0) return 0;
  const std::size_t count = bytes / sizeof(Element);
  const std::size_t part = count / static_cast<std::size_t>(m.members);
  std::vector<Element> found(q.kind == "reduce-scatter" ? part : count);
  CUDA_OK(cudaMemcpy(found.data(), m.out, found.size() * sizeof(Element), cudaMemcpyDeviceToHost));
  bench::RelativeError error;
  for (std::size_t i = 0; i < found.size(); ++i)
    error.add(static_cast<double>(__bfloat162float(found[i])), expected(m, q, part, i));
  const bool sums = q.kind == "all-reduce" || q.kind == "reduce-scatter";
  bench::expect_error_below(error.value(), sums ? 0.02 : 0, q.kind);
  return error.value();
}

// Median over repeats of the slowest rank's time; all ranks call it and get the same.
bench::Timing measure(const Member& m, const Question& q, std::uint64_t bytes, bool graph,
                      double chain_us, int& blocks) {
  const cudaStream_t stream = m.gpu.stream;
  const bench::Enqueue call = [&](cudaStream_t s, int) { enqueue(m, q, bytes, s); };
  bench::Events events;
  double once = 0;
  if (m.inside()) {
    call(stream, 0);  // connects the ranks
    CUDA_OK(cudaStreamSynchronize(stream));
    gate(m, stream);
    events.begin(stream);
    call(stream, 0);
    call(stream, 1);
    events.end(stream);
    once = events.microseconds() / 2;
  }
  once = std::max(1.0, m.rank.greatest(once, m.members));
  bench::Timing t;
  t.calls = static_cast<int>(std::clamp(chain_us / once, 4.0, 100.0));
  std::unique_ptr<bench::WatchedGraph> chain;
  if (graph && m.inside()) {
    chain = std::make_unique<bench::WatchedGraph>(stream, t.calls, call);
    blocks = chain->blocks();
  }
  if (m.rank.index == 0) t.clock_before_mhz = m.gpu.nvml.sm_clock_mhz();
  constexpr int repeats = 5;
  std::vector<double> times;
  for (int i = -1; i < repeats; ++i) {  // the first is not counted
    m.rank.wait();
    double us = 0;
    if (m.inside()) {
      gate(m, stream);
      events.begin(stream);
      if (chain)
        chain->launch(stream);
      else
        for (int k = 0; k < t.calls; ++k) call(stream, k);
      events.end(stream);
      us = events.microseconds() / t.calls;
    }
    if (i >= 0) times.push_back(us);
  }
  if (m.rank.index == 0) {
    t.clock_after_mhz = m.gpu.nvml.sm_clock_mhz();
    t.power_w = m.gpu.nvml.power_w();
    t.temperature_c = m.gpu.nvml.temperature_c();
  }
  bench::summarise(m.rank.greatest(times, m.members), t);
  m.rank.wait();  // graphs end when no rank runs any more
  return t;
}

struct Plan {
  std::string protocol;  // "" for NCCL's own choice
  bool graph = true;
  std::vector<std::uint64_t> sizes;
  double chain_us = 4000;
};

// What all-reduce and its halves alone have in several protocols.
bool asked(const Plan& plan, const Question& q, int members, std::uint64_t bytes) {
  if (q.variant == "one-way" && members != 2) return false;
  if (plan.protocol.empty()) return true;
  if (q.kind != "all-reduce" && q.kind != "all-gather" && q.kind != "reduce-scatter") return false;
  if (plan.protocol == "LL") return bytes <= 16 * MiB;
  return plan.protocol != "LL128" || bytes <= 256 * MiB;
}

void run_plan(const Member& m, const Plan& plan, const std::vector<Question>& asked_for) {
  for (const Question& q : asked_for) {
    bool checked = false;
    for (const std::uint64_t size : plan.sizes) {
      if (!asked(plan, q, m.members, size)) continue;
      const std::uint64_t bytes = whole(size, m.members);
      double error = -1;
      if (!checked && size >= 256 * KiB) {
        error = m.rank.greatest(m.inside() ? check(m, q, bytes) : 0, m.members);
        checked = true;
      }
      int blocks = 0;
      const bench::Timing t = measure(m, q, bytes, plan.graph, plan.chain_us, blocks);
      if (m.rank.index != 0) continue;
      std::string protocol = plan.protocol;
      for (char& c : protocol) c = static_cast<char>(std::tolower(c));
      bench::Line line("sample");
      line.text("part", "collectives")
          .text("kind", q.kind)
          .text("library", "nccl")
          .text("variant", q.variant)
          .text("mode", plan.graph ? "graph" : "stream")
          .number("ranks", m.members)
          .number("bytes", bytes)
          .text("protocol", plan.protocol.empty() ? "default" : protocol)
          .text("algorithm", plan.protocol.empty() ? "default" : "ring");
      if (blocks > 0) line.number("sms", blocks);
      bench::add(line, t);
      if (error >= 0) line.number("error", error);
      line.print();
    }
  }
}

std::vector<std::uint64_t> all_sizes() {
  std::vector<std::uint64_t> sizes = {KiB, 4 * KiB, 16 * KiB, 64 * KiB};
  for (std::uint64_t s = 256 * KiB; s <= 1024 * MiB; s *= 2) sizes.push_back(s);
  // Activations of 1,024 and 4,096 tokens of 7,168 numbers, a bucket of gradients, and others
  // between powers of two.
  for (const std::uint64_t s :
       {8 * KiB, 40 * KiB, 96 * KiB, 160 * KiB, 384 * KiB, 768 * KiB, 1536 * KiB, 3 * MiB, 6 * MiB,
        14 * MiB, 25 * MiB, 56 * MiB, 96 * MiB, 200 * MiB, 384 * MiB, 768 * MiB})
    sizes.push_back(s);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<Plan> plans(bool quick) {
  if (quick) return {{.sizes = {4 * KiB, 256 * KiB, 16 * MiB}, .chain_us = 500}};
  std::vector<std::uint64_t> fewer, few;
  for (std::uint64_t s = KiB; s <= 1024 * MiB; s *= 4) few.push_back(s);
  for (std::uint64_t s = KiB; s <= 1024 * MiB; s *= s < 64 * KiB ? 4 : 2) fewer.push_back(s);
  return {{.sizes = all_sizes()},
          {.graph = false, .sizes = few},
          {.protocol = "LL", .sizes = fewer},
          {.protocol = "LL128", .sizes = fewer},
          {.protocol = "Simple", .sizes = fewer}};
}

void run_rank(const Rank& rank, const Plan& plan, bool first) {
  const bench::Gpu gpu(rank.index);
  if (first && rank.index == 0)
    bench::print_conditions("collectives", gpu, bench::nccl_libraries(), rank.count);
  const std::uint64_t most = plan.sizes.back() / sizeof(Element);
  const bench::Buffer<Element> in(most), out(most);
  bench::randomise(in.get(), most, static_cast<std::uint64_t>(rank.index + 1));
  CUDA_OK(cudaDeviceSynchronize());
  for (int members = 2; members <= rank.count; members *= 2) {
    const ncclComm_t comm = rank.communicator(members);
    run_plan({.rank = rank,
              .gpu = gpu,
              .comm = comm,
              .members = members,
              .in = in.get(),
              .out = out.get()},
             plan, questions);
    if (comm != nullptr) NCCL_OK(ncclCommDestroy(comm));
    rank.wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::read_options(argc, argv);
  bench::Shared* shared = bench::shared_memory();
  const int gpus = bench::count_peers(shared, options.gpus, argv[0]);
  bool first = true;
  for (const Plan& plan : plans(options.quick)) {
    // NCCL reads these when a communicator begins; every plan has processes of its own.
    if (!plan.protocol.empty()) {
      setenv("NCCL_PROTO", plan.protocol.c_str(), 1);
      setenv("NCCL_ALGO", "Ring", 1);
    }
    bench::run_ranks(shared, gpus, [&](const Rank& rank) { run_rank(rank, plan, first); });
    first = false;
  }
  return 0;
}
