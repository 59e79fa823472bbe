// SPDX-License-Identifier: Apache-2.0
// Makes, copies and destroys a stack, once for all units that hold one.
#include "workloads/stack/stack.h"

namespace orrery {

Stack::Stack() = default;
Stack::Stack(const Stack&) = default;
Stack::Stack(Stack&&) noexcept = default;
Stack& Stack::operator=(const Stack&) = default;
Stack& Stack::operator=(Stack&&) noexcept = default;
Stack::~Stack() = default;

}  // namespace orrery
