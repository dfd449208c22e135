#pragma once

#include <string>

namespace polylog::cli::kafka_tools {

// A double as Java's Double.toString() writes it: 1.0, 0.5, 1.048576E7.
std::string java_double(double number);

}  // namespace polylog::cli::kafka_tools
