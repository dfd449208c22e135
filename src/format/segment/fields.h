#pragma once

#include "format/kafka/fields.h"

// Byte tables are made of the same two things in every layout.
namespace polylog::format::segment {

using kafka::contiguous;
using kafka::Field;

}  // namespace polylog::format::segment
