// Knows the board's clocks, power and temperature, through NVML, which every driver brings.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <string>

namespace bench {

// Loaded at run time: the toolkit need not have NVML's header. Every reading is 0 (or empty) where
// the driver does not answer.
class Nvml {
 public:
  explicit Nvml(const std::string& pci_bus_id) {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library_ == nullptr) return;
    const auto init = find<int (*)()>("nvmlInit_v2");
    const auto by_bus = find<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (init == nullptr || by_bus == nullptr || init() != 0) return;
    if (by_bus(pci_bus_id.c_str(), &device_) != 0) device_ = nullptr;
  }

  double power_w() const {
    // Field 186 is the instantaneous draw: the plain call averages over a second on some boards.
    FieldValue value{.field = 186, .scope = 0};
    const auto fields = find<int (*)(void*, int, FieldValue*)>("nvmlDeviceGetFieldValues");
    if (device_ != nullptr && fields != nullptr && fields(device_, 1, &value) == 0 &&
        value.result == 0 && value.value.whole > 0)
      return 1e-3 * value.value.whole;
    return 1e-3 * reading("nvmlDeviceGetPowerUsage");
  }
  double power_limit_w() const { return 1e-3 * reading("nvmlDeviceGetEnforcedPowerLimit"); }
  double sm_clock_mhz() const { return reading("nvmlDeviceGetClockInfo", 1); }
  double memory_clock_mhz() const { return reading("nvmlDeviceGetMaxClockInfo", 2); }
  double max_clock_mhz() const { return reading("nvmlDeviceGetMaxClockInfo", 1); }
  double temperature_c() const { return reading("nvmlDeviceGetTemperature", 0); }
  std::string driver() const {
    char text[96] = "";
    const auto get = find<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    if (get != nullptr) get(text, sizeof text);
    return text;
  }

 private:
  struct FieldValue {  // nvmlFieldValue_t
    unsigned field, scope;
    long long timestamp = 0, latency = 0;
    int type = 0, result = 0;
    union {
      double real;
      unsigned whole;
      unsigned long long wide = 0;
    } value;
  };

  template <class Function>
  Function find(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
  }
  double reading(const char* name) const {
    unsigned value = 0;
    const auto get = find<int (*)(void*, unsigned*)>(name);
    return device_ != nullptr && get != nullptr && get(device_, &value) == 0 ? value : 0;
  }
  double reading(const char* name, int which) const {
    unsigned value = 0;
    const auto get = find<int (*)(void*, int, unsigned*)>(name);
    return device_ != nullptr && get != nullptr && get(device_, which, &value) == 0 ? value : 0;
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace bench
