// SPDX-License-Identifier: Apache-2.0
// Knows what a profile of one rank says: its steps, what the GPU did in them and what it waited
// for.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/names.h"
#include "sim/base/units/units.h"
#include "sim/observe/profile/kernel_classes.h"

namespace orrery::observe {

// Nsight Systems: from the documented schema of its SQLite export; no real file was there to read.
enum class ProfileSource : std::uint8_t { kineto, nsight };
inline constexpr auto profile_source_text =
    enum_names<ProfileSource>({"PyTorch profiler", "Nsight Systems"});

// How the bounds of steps were found.
enum class StepSource : std::uint8_t {
  annotated,   // "ProfilerStep#7", or ranges of NVTX that count steps
  optimizer,   // the ends of "Optimizer.step#..."
  repetition,  // from kernels that come back evenly: a guess, and a note says so
  whole,       // none was found: the whole profile counts as one step
};
inline constexpr auto step_source_text =
    enum_names<StepSource>({"annotations", "optimizer", "repetition", "whole"});

// While the GPU is idle, the host does one of these. Of several at once the first in this list
// counts.
enum class HostWork : std::uint8_t {
  profiler,     // its own overhead: not the run's
  data_loader,  // waits for the next batch
  allocate,     // cudaMalloc, cudaFree and the like: the caching allocator had nothing
  synchronise,  // waits for the device, in a call or in a copy that waits
  item,         // a value is fetched from the device (.item(), bool(tensor))
  launch,       // launches kernels, copies and sets
  framework,    // operations of the framework between launches
  python,       // Python between operations (recorded with stacks)
  runtime,      // other calls of the driver
  unknown,      // nothing was recorded
};
inline constexpr auto host_work_text =
    enum_names<HostWork>({"profiler", "data loader", "allocation", "synchronisation", "item",
                          "launch", "framework", "python", "runtime", "unknown"});
inline constexpr std::size_t host_works = host_work_text.count;
inline constexpr std::size_t collective_kinds = 6;

// Times of kernels are sums over kernels: those of two streams count twice. What says "covered",
// "exposed", "busy" or "idle" is of the clock.
struct ProfiledStep {
  std::int64_t number = 0;  // as annotated, else counted from 0
  // Since the first event of the device; before it, less than nothing. Bounds are where the GPU
  // begins the step's first kernel, where launches are known; else where the host begins it.
  Seconds begin, end;
  bool whole = true;                 // false: it ends with its last kernel, since no step follows
  std::optional<Seconds> host_time;  // from the host's begin to the next step's
  Seconds busy, idle;                // of the GPU, over all streams
  std::array<Seconds, kernel_classes> by_class{};
  std::array<std::size_t, kernel_classes> count_by_class{};
  std::array<Seconds, collective_kinds> by_collective{};  // by CollectiveKind
  Seconds communication, exposed_communication;           // on the clock; without compute beside it
  Seconds compute, uncovered_compute;                     // on the clock; without communication
  std::array<Seconds, host_works> idle_by_host{};         // adds up to idle
  Seconds idle_after_wait;  // part of idle in gaps that begin while the host waits for the device
  std::size_t kernels = 0, launches = 0, gaps = 0, waits = 0, allocations = 0;
};

// The GPU idle for a while. The longest of a profile are kept.
struct IdleGap {
  std::int64_t step = 0;
  Seconds begin, length;
  HostWork host = HostWork::unknown;  // what took most of it
  std::array<Seconds, host_works> by_host{};
  bool after_wait = false;  // it begins while the host waits for the device, or ends such a wait
  // Of events of `host` the innermost that fills half of it, else the one that fills most.
  std::string host_event;
  std::string before, after;  // kernels
};

struct LaunchShape {
  std::array<std::int64_t, 3> grid{}, block{};
  std::optional<std::int64_t> shared_bytes, registers;
  std::optional<double> occupancy;  // 0 to 1, as the profiler estimates it
};

struct KernelRow {
  std::string name;
  KernelClass what = KernelClass::other;
  std::optional<Format> format;  // of products and attention, where the name or its operation says
  std::size_t count = 0;
  Seconds total, median, p90, least, most;
  LaunchShape shape;       // that most of its time ran with
  std::size_t shapes = 1;  // how many it ran with
};

// Collectives of one kind, group and size.
struct CollectiveRecord {
  std::optional<CollectiveKind> kind;
  std::string name;                     // of the call, or of the kernel where no call is known
  std::string group, group_name;        // as the framework names it ("0"), and describes it
  std::optional<int> ranks;             // of the group
  std::string type;                     // "BFloat16"
  std::optional<Bytes> sent, received;  // of this rank's buffers
  std::size_t count = 0;
  Seconds total, median, p90, least;
  std::vector<Seconds> each;  // in the order of the calls
};

// Calls or operations of the host by name. Times of operations hold those of what they call.
struct HostRow {
  std::string name;
  std::size_t count = 0;
  Seconds total;
};

struct ProductShape {
  std::string operation, type;  // "aten::mm", "c10::BFloat16"
  std::string shapes;           // "[[4096,1024],[1024,4096]]"
  std::size_t count = 0;
};

struct ProductFormat {
  std::optional<Format> format;  // nothing: not known
  Seconds time;                  // of kernels of products
  std::size_t kernels = 0;
};

struct ProfiledRank {
  std::optional<int> rank, world_size;
  std::optional<std::string> backend, nccl_version, host;
};

struct ProfiledDevice {
  int index = 0;
  std::optional<std::string> name;
  std::optional<int> multiprocessors;
  std::optional<Bytes> memory;
  std::optional<int> compute_major, compute_minor;
};

struct RecordedWith {
  bool shapes = false, stacks = false, memory = false;
  bool launches = false;  // calls of the driver, so that kernels are known to belong to steps
};

// What others did on the device: another process that had it for slices of time, a kernel that runs
// through steps. Times are of a step, mean over those that the mean step holds.
struct ForeignWork {
  std::size_t slices = 0;                      // of all these steps
  std::array<Seconds, kernel_classes> lost{};  // by kernels that were suspended
  Seconds usual;                               // of the kernels that were looked at, without that
  bool products = false;                       // products were looked at, too
  Seconds kept_waiting;                        // the device had work and did none of it
  Seconds alone;                               // only a kernel that runs through the step ran
};

struct Profile {
  std::string file;
  ProfileSource source = ProfileSource::kineto;
  ProfiledRank rank;
  ProfiledDevice device;
  RecordedWith recorded;
  Seconds span;  // from the first to the last event of the device
  StepSource step_source = StepSource::whole;
  std::vector<ProfiledStep> steps;
  ProfiledStep mean;               // over whole steps, or all where none is; `number`: how many
  std::vector<KernelRow> kernels;  // by total time, most first; of all events
  ForeignWork foreign;
  std::vector<CollectiveRecord> collectives;
  std::vector<ProductFormat> product_formats;                   // most time first
  std::vector<ProductShape> product_shapes;                     // most often first
  std::vector<HostRow> runtime_calls, operations, annotations;  // most time first
  std::vector<IdleGap> gaps;                                    // longest first, at most 200
  std::optional<Seconds> launch_delay;  // median from a launch to its kernel's start
  std::size_t streams = 0, events = 0;
  std::optional<Bytes> most_allocated, most_reserved;  // where memory was recorded
  std::vector<std::string> notes;
};

// Reads a trace of PyTorch's profiler, plain or packed, also one that ends early. Error: no trace,
// no kernel in it, JSON that is none.
Profile read_kineto(const std::filesystem::path& file);
// Reads an SQLite export of Nsight Systems. A file with several processes or devices gives the
// device with most work of kernels; a note tells of others. Error: no such database, no kernel.
Profile read_nsight(const std::filesystem::path& file);

// Whether a text that starts so is JSON of a trace; whether a file that starts so is SQLite's.
bool is_trace(std::string_view first_bytes);
bool is_database(std::string_view first_bytes);

}  // namespace orrery::observe
