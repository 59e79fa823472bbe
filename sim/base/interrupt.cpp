// Knows the signal handler behind interrupted(): the one flag that a handler may set.
#include "sim/base/interrupt.h"

#include <atomic>
#include <csignal>

namespace orrery {
namespace {

// A signal handler can reach nothing but an object of static lifetime.
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_interrupt(int) { interrupt_flag.store(true, std::memory_order_relaxed); }

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  // The first SIGINT restores the default action, so that the second ends the process.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return interrupt_flag.load(std::memory_order_relaxed); }

void set_interrupted(bool value) { interrupt_flag.store(value, std::memory_order_relaxed); }

}  // namespace orrery
