// SPDX-License-Identifier: Apache-2.0
// Knows the signal handler behind interrupted(): the one number that a handler may set.
#include "sim/base/errors/interrupt.h"

#include <atomic>

namespace orrery {
namespace {

// A signal handler can reach nothing but an object of static lifetime.
std::atomic<int> signal_number{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int number) { signal_number.store(number, std::memory_order_relaxed); }

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  // The first signal restores the default action, so that the second ends the process.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

InterruptWatch::InterruptWatch() {
  set_interrupted(false);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
}

InterruptWatch::~InterruptWatch() {
  sigaction(SIGINT, &before_, nullptr);
  set_interrupted(false);
}

bool interrupted() { return interrupting_signal() != 0; }

int interrupting_signal() { return signal_number.load(std::memory_order_relaxed); }

void set_interrupted(bool value) {
  signal_number.store(value ? SIGINT : 0, std::memory_order_relaxed);
}

}  // namespace orrery
