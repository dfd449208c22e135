#pragma once

#include <string>
#include <vector>

#include "broker/topic_config.h"
#include "convert/convert.h"
#include "convert/data_directory.h"
#include "convert/layouts.h"

namespace polylog::convert {

// One topic of the source, and what becomes of it.
struct PlannedTopic {
  Topic from;
  Topic to;
  broker::TopicConfig config;  // in the target
};

// invalid, unsupported: a topic that the layout can't hold, and why. Topics that RocketMQ keeps for
// itself are left out where they hold nothing.
Result<std::vector<PlannedTopic>> plan_topics(const DataDirectory& source, const Options& options);

Surroundings surroundings_of(const PlannedTopic& topic, std::int32_t partition,
                             const broker::Settings& settings);

}  // namespace polylog::convert
