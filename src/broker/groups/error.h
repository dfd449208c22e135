#pragma once

namespace polylog::broker::groups {

// What a group's coordinator answers instead of doing what was asked: Kafka's errors of groups
// (Kafka wire protocol, "Classic consumer groups" and "KIP-848 consumer groups"), one to one.
enum class GroupError {
  none,
  coordinator_not_available,
  not_coordinator,
  load_in_progress,
  invalid_group_id,
  illegal_generation,
  unknown_member_id,
  rebalance_in_progress,
  inconsistent_group_protocol,
  invalid_session_timeout,
  member_id_required,
  fenced_instance_id,
  group_max_size_reached,
  non_empty_group,
  group_id_not_found,
  group_subscribed_to_topic,
  unknown_topic_or_partition,
  unknown_topic_id,
  offset_metadata_too_large,
  unstable_offset_commit,
  fenced_member_epoch,
  unreleased_instance_id,
  unsupported_assignor,
  stale_member_epoch,
  invalid_regular_expression,
  invalid_request,
  unsupported_version,  // of a request that this group's members need a later one of
  storage,  // the record could not be written: retriable
};

}  // namespace polylog::broker::groups
