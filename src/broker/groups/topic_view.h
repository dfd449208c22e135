#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/ids.h"

namespace polylog::broker::groups {

// A topic as groups see it.
struct TopicImage {
  std::string name;
  Uuid id;
  std::int32_t partitions = 0;
};

// The topics there are now. The coordinator's is the broker's; tests bring their own. Reactor only.
class TopicView {
 public:
  virtual ~TopicView() = default;
  virtual std::optional<TopicImage> find(const std::string& name) const = 0;
  virtual std::optional<TopicImage> find(const Uuid& id) const = 0;
  virtual void each(const std::function<void(const TopicImage&)>& visit) const = 0;
};

}  // namespace polylog::broker::groups
