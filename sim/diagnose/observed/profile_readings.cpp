// SPDX-License-Identifier: Apache-2.0
// Reads symptoms off profiles of ranks.
#include <algorithm>
#include <cmath>

#include "sim/diagnose/observed/observations.h"

namespace orrery {
namespace {

using observe::CollectiveRecord;
using observe::HostWork;
using observe::KernelClass;
using observe::Profile;

using Values = std::vector<std::optional<double>>;

// Slices of time that kernels lost to another process.
double lost_of(const Profile& p) {
  double seconds = 0;
  for (const Seconds& lost : p.foreign.lost) seconds += lost.si();
  return seconds;
}

// Slices of time that kernels lost are none of theirs.
double of_class(const Profile& p, std::initializer_list<KernelClass> classes) {
  double seconds = 0;
  for (const KernelClass c : classes) {
    const auto i = static_cast<std::size_t>(c);
    seconds += p.mean.by_class[i].si() - p.foreign.lost[i].si();
  }
  return seconds;
}

double products(const Profile& p) {
  return of_class(p, {KernelClass::product, KernelClass::convolution});
}
double attention(const Profile& p) { return of_class(p, {KernelClass::attention}); }
double optimizer(const Profile& p) { return of_class(p, {KernelClass::optimizer}); }
double memory_kernels(const Profile& p) {
  return of_class(
      p, {KernelClass::norm, KernelClass::softmax, KernelClass::reduction, KernelClass::elementwise,
          KernelClass::indexing, KernelClass::quantise, KernelClass::set, KernelClass::other});
}
// A kernel that runs through most of a step is no part of it: it waits, or others keep it waiting.
constexpr double through_the_step = 0.5;
bool runs_through(const Profile& p, const observe::KernelRow& row) {
  return row.what != KernelClass::communication &&
         row.most.si() > through_the_step * (p.mean.end - p.mean.begin).si();
}
double running_through(const Profile& p) {
  double seconds = 0;
  for (const observe::KernelRow& row : p.kernels)
    if (runs_through(p, row)) seconds += row.total.si();
  return seconds / std::max<double>(1, static_cast<double>(p.steps.size()));
}
double memory_bound(const Profile& p) { return memory_kernels(p) - running_through(p); }
// Collectives that nothing hides, with the copies of their buffers on the clock beside no kernel of
// another kind: a prediction counts both as communication.
double exposed(const Profile& p) {
  const double kinds = products(p) + attention(p) + memory_kernels(p) + optimizer(p);
  return p.mean.exposed_communication.si() +
         std::max(0.0, p.mean.compute.si() - lost_of(p) - kinds);
}
double communication(const Profile& p) { return of_class(p, {KernelClass::communication}); }

double span_of(const Profile& p) { return (p.mean.end - p.mean.begin).si(); }

// By how much the profiled step is longer than the usual one: the profiler's own, and chance.
double lengthened(const Profile& p, std::optional<double> step_s) {
  return step_s ? std::max(0.0, span_of(p) - *step_s) : 0;
}

// Without work of the device, for other reasons than the profiler and a loader that it names.
double profiled_idle(const Profile& p) {
  const auto of = [&](HostWork work) {
    return p.mean.idle_by_host[static_cast<std::size_t>(work)].si();
  };
  return p.mean.idle.si() - of(HostWork::data_loader) - of(HostWork::profiler) -
         p.foreign.kept_waiting.si();
}
double idle_of(const Profile& p, std::optional<double> step_s) {
  return std::max(0.0, profiled_idle(p) - lengthened(p, step_s));
}
// A kernel that is none of the run's has the device alone. By what profiled steps are longer than
// usual ones, idle time is shorter in these, and then this.
double alone_of(const Profile& p, std::optional<double> step_s) {
  const double less = std::max(0.0, lengthened(p, step_s) - std::max(0.0, profiled_idle(p)));
  return std::max(0.0, p.foreign.alone.si() - less);
}

double mean_call_bytes(const Profile& p) {
  double bytes = 0, calls = 0;
  for (const CollectiveRecord& record : p.collectives) {
    const double size = bytes_of(record);
    // Losses and norms are reduced, too, a few bytes each.
    if (size < 1e4) continue;
    bytes += size * static_cast<double>(record.count);
    calls += static_cast<double>(record.count);
  }
  return calls > 0 ? bytes / calls : 0;
}

double in_32_bits(const Profile& p) {
  double all = 0, wide = 0;
  for (const auto& format : p.product_formats) {
    all += format.time.si();
    if (format.format == Format::fp32 || format.format == Format::tf32) wide += format.time.si();
  }
  return all > 0 ? wide / all : 0;
}

// Seconds in calls that launch, beyond what a call takes, over those of kernels that compute.
double launching(const Profile& p) {
  constexpr double usual_call = 7.5e-6;  // seconds, profiled: 5 to 9 in validation/faults
  double seconds = 0;
  for (const auto& row : p.runtime_calls)
    if (row.name.find("LaunchKernel") != std::string::npos)
      seconds += row.total.si() - usual_call * static_cast<double>(row.count);
  const double steps = std::max<double>(1, static_cast<double>(p.steps.size()));
  const double compute = products(p) + attention(p) + memory_bound(p) + optimizer(p);
  return compute > 0 ? seconds / steps / compute : 0;
}

template <class Of>
Values of_all(const std::vector<Profile>& profiles, const Of& of) {
  Values values;
  for (const Profile& p : profiles) values.push_back(of(p));
  return values;
}

// Kernels of a class that a run does not have say nothing.
std::optional<double> log_if(double seconds) {
  return seconds > 1e-6 ? std::optional(std::log(seconds)) : std::nullopt;
}

double mean_of(const std::vector<Profile>& profiles, double (*of)(const Profile&)) {
  double sum = 0;
  for (const Profile& p : profiles) sum += of(p);
  return sum / static_cast<double>(profiles.size());
}

// Seconds a step without work of the device while the host waits for a batch, mean over ranks;
// nothing where no profile names the loader.
std::optional<double> loader_waits(const std::vector<Profile>& profiles) {
  if (!name_loader(profiles)) return std::nullopt;
  constexpr auto loader = static_cast<std::size_t>(HostWork::data_loader);
  return mean_of(profiles, [](const Profile& p) { return p.mean.idle_by_host[loader].si(); });
}

// What others did on the device. Slices of time come over the rest of the time of kernels that were
// looked at.
void read_foreign_work(const std::vector<Profile>& profiles, std::optional<double> step_s,
                       const RunState& healthy, Readings& readings) {
  constexpr double slice = 2.2e-3;  // seconds: mean of those in validation/faults
  const auto usual = [](const Profile& p) { return p.foreign.usual.si(); };
  const std::size_t first = readings.size();
  add_of_ranks(
      readings, Symptom::suspended, of_all(profiles, [&](const Profile& p) {
        const double compute = p.mean.compute.si() - lost_of(p);
        if (usual(p) <= 0 || compute <= 0) return std::optional<double>();
        return std::optional(lost_of(p) / usual(p) + p.foreign.kept_waiting.si() / compute);
      }));
  for (std::size_t i = first; i < readings.size(); ++i) {
    const Profile& p = profiles[static_cast<std::size_t>(std::max(0, readings[i].rank))];
    const double steps = std::max(1.0, static_cast<double>(p.mean.number));
    readings[i].slice = slice / (steps * usual(p));
  }
  add_of_ranks(readings, Symptom::alone, of_all(profiles, [&](const Profile& p) {
                 return std::optional(alone_of(p, step_s) / healthy.healthy_s);
               }));
}

bool has(const Readings& readings, Symptom symptom) {
  return std::any_of(readings.begin(), readings.end(),
                     [&](const Reading& reading) { return reading.symptom == symptom; });
}

void read_communication(const std::vector<Profile>& profiles, std::optional<double> step_s,
                        const RunState& healthy, Readings& readings) {
  double least_calls = communication(profiles.front());
  double least_exposed = exposed(profiles.front());
  for (const Profile& p : profiles) {
    least_calls = std::min(least_calls, communication(p));
    least_exposed = std::min(least_exposed, exposed(p));
  }
  readings.push_back({.symptom = Symptom::exposed, .value = least_exposed / healthy.healthy_s});
  if (profiles.size() < 2) return;
  const std::size_t first = readings.size();
  add_of_ranks(readings, Symptom::wait, of_all(profiles, [&](const Profile& p) {
                 return std::optional((communication(p) - least_calls) / healthy.healthy_s);
               }));
  add_of_ranks(readings, Symptom::late, of_all(profiles, [&](const Profile& p) {
                 return std::optional(exposed(p) / healthy.healthy_s);
               }));
  double longest = 0;
  for (const Profile& p : profiles) longest = std::max(longest, lengthened(p, step_s));
  // What the profiler adds to one rank, the other waits for.
  for (std::size_t i = first; i < readings.size(); ++i)
    readings[i].noise = longest / healthy.healthy_s;
}

}  // namespace

double bytes_of(const CollectiveRecord& record) {
  return std::max(record.sent.value_or(Bytes{}).si(), record.received.value_or(Bytes{}).si());
}

double share_of_wait_exposed(const std::vector<Profile>& profiles, std::optional<double> step_s,
                             const RunState& healthy) {
  const double judged = healthy.profiled.exposed_wait;
  if (profiles.size() < 2) return judged;
  constexpr double known = 0.3;  // how well the judged share is known: a third to all
  double least_calls = communication(profiles.front()), longest = 0;
  double least_exposed = exposed(profiles.front());
  for (const Profile& p : profiles) {
    least_calls = std::min(least_calls, communication(p));
    least_exposed = std::min(least_exposed, exposed(p));
    longest = std::max(longest, lengthened(p, step_s));
  }
  const double noise = std::hypot(
      symptom_noise()[static_cast<std::size_t>(Symptom::late)].rank * healthy.healthy_s, longest);
  // The share that fits best what ranks show of their waits, and the judged one by its own weight.
  double weight = 1 / (known * known), sum = judged * weight;
  for (const Profile& p : profiles) {
    const double waited = (communication(p) - least_calls) / noise;
    sum += waited * (exposed(p) - least_exposed) / noise;
    weight += waited * waited;
  }
  return std::clamp(sum / weight, 0.0, 1.0);
}

bool has_collectives_alone(const std::vector<Profile>& profiles, std::optional<double> step_s,
                           const RunState& healthy) {
  // Of collectives' time beside compute, as predicted and as seen; of a step, without work.
  constexpr double expected_beside = 0.1, none = 0.005, mostly_at_work = 0.1, blocked = 0.3;
  if (profiles.empty() || mean_of(profiles, launching) > blocked) return false;
  const double waits =
      mean_of(profiles, [](const Profile& p) { return static_cast<double>(p.mean.waits); });
  if (waits > static_cast<double>(healthy.layers)) return false;
  double calls = communication(profiles.front()), alone = exposed(profiles.front()), idle = 0;
  for (const Profile& p : profiles) {
    calls = std::min(calls, communication(p));
    alone = std::min(alone, exposed(p));
    idle = std::max(idle, idle_of(p, step_s) / span_of(p));
  }
  const double shown = expected(healthy, Symptom::exposed, -1) * healthy.healthy_s;
  return calls > 0 && 1 - shown / calls > expected_beside && alone > (1 - none) * calls &&
         idle < mostly_at_work;
}

bool has_kernel_through_steps(const std::vector<Profile>& profiles) {
  for (const Profile& p : profiles)
    if (running_through(p) > 0) return true;
  return false;
}

bool name_loader(const std::vector<Profile>& profiles) {
  const auto names_loader = [](const Profile& p) {
    const auto is_loader = [](const observe::HostRow& row) {
      return row.name.find("DataLoader") != std::string::npos;
    };
    return std::any_of(p.annotations.begin(), p.annotations.end(), is_loader) ||
           std::any_of(p.operations.begin(), p.operations.end(), is_loader);
  };
  return std::all_of(profiles.begin(), profiles.end(), names_loader);
}

bool tell_slices_of_products(const std::vector<Profile>& profiles) {
  return !profiles.empty() && std::all_of(profiles.begin(), profiles.end(),
                                          [](const Profile& p) { return p.foreign.products; });
}

bool has_collectives_on_hosts(const std::vector<Profile>& profiles) {
  const auto checked = [](const Profile& p) {
    std::size_t hosts = 0, devices = 0;
    for (const observe::HostRow& row : p.annotations)
      if (row.name.find("gloo:all") != std::string::npos) hosts += row.count;
    for (const CollectiveRecord& record : p.collectives) devices += record.count;
    return devices > 0 && 2 * hosts > devices;
  };
  return std::any_of(profiles.begin(), profiles.end(), checked);
}

bool has_older_kernels(const std::vector<Profile>& profiles, observe::KernelClass what,
                       const Scenario& scenario) {
  // As CUTLASS, cuBLAS and cuDNN write the generation that a kernel was built for.
  constexpr std::pair<const char*, int> generations[] = {
      {"sm70", 7},   {"sm75", 7},   {"sm80", 8},       {"sm_80", 8},      {"volta", 7},
      {"turing", 7}, {"ampere", 8}, {"cutlass_80", 8}, {"cutlass_75", 7}, {"cutlass_70", 7}};
  double all = 0, older = 0;
  for (const Profile& p : profiles)
    for (const observe::KernelRow& row : p.kernels) {
      const bool wide = row.format == Format::fp32 || row.format == Format::tf32;
      if (row.what != what || wide) continue;
      all += row.total.si();
      const int device = p.device.compute_major.value_or(0);
      bool of_older =
          std::any_of(std::begin(generations), std::end(generations), [&](const auto& generation) {
            return row.name.find(generation.first) != std::string::npos &&
                   generation.second < device;
          });
      // FlashAttention 2 is Ampere's, and its names do not say so; those of version 3 do.
      const bool is_flash2 = row.name.find("flash_fwd_kernel") != std::string::npos ||
                             row.name.find("flash_fwd_splitkv") != std::string::npos ||
                             row.name.find("flash_bwd_d") != std::string::npos;
      of_older |= is_flash2 && device > 8 && scenario.stack.kernels.attention != Library::flash2;
      if (of_older) older += row.total.si();
    }
  return 2 * older > all;
}

void read_profiles(const std::vector<Profile>& profiles, std::optional<double> step_s,
                   const RunState& healthy, const Scenario& scenario, Readings& readings) {
  const auto add = [&](Symptom symptom, double value) {
    readings.push_back({.symptom = symptom, .value = value});
  };
  const std::size_t first = readings.size();
  const std::pair<Symptom, double (*)(const Profile&)> classes[] = {
      {Symptom::products, products},
      {Symptom::attention, attention},
      {Symptom::memory_bound, memory_bound},
      {Symptom::optimizer, optimizer}};
  for (const auto& [symptom, of] : classes)
    add_of_ranks(readings, symptom,
                 of_all(profiles, [of = of](const Profile& p) { return log_if(of(p)); }));
  add_of_ranks(readings, Symptom::idle, of_all(profiles, [&](const Profile& p) {
                 return std::optional(idle_of(p, step_s) / healthy.healthy_s);
               }));
  if (!has(readings, Symptom::data))
    if (const auto waits = loader_waits(profiles)) add(Symptom::data, *waits / healthy.healthy_s);
  if (profiles.size() > 1) {
    Values work;
    for (const double threads : threads_of(profiles)) work.push_back(log_if(threads));
    add_of_ranks(readings, Symptom::work, work);
  }
  read_foreign_work(profiles, step_s, healthy, readings);
  read_communication(profiles, step_s, healthy, readings);
  read_links(profiles, scenario, readings);
  if (const double bytes = mean_of(profiles, mean_call_bytes); bytes > 0)
    add(Symptom::call_bytes, std::log(bytes / expected_call_bytes(scenario)));
  add(Symptom::fp32, mean_of(profiles, in_32_bits));
  add(Symptom::launching, mean_of(profiles, launching));
  add(Symptom::host_waits, std::log(1 + mean_of(profiles, [](const Profile& p) {
                                      return static_cast<double>(p.mean.waits);
                                    })));
  add(Symptom::allocations, std::log(1 + mean_of(profiles, [](const Profile& p) {
                                       return static_cast<double>(p.mean.allocations);
                                     })));
  // A profiled step that was much shorter than usual ones does not show what lengthens them.
  double longest = 0;
  for (const Profile& p : profiles) longest = std::max(longest, span_of(p));
  if (!step_s || longest >= *step_s) return;
  for (std::size_t i = first; i < readings.size(); ++i)
    readings[i].noise = std::hypot(readings[i].noise, std::log(*step_s / longest));
}

}  // namespace orrery
