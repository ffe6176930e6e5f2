#ifndef SIPHON_LAUNCH_COMMANDS_PARTITION_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_PARTITION_REPORT_H_

#include <string>

#include "partitioner/partition_graph.h"
#include "partitioner/profile_graph.h"

namespace siphon {

// What siphon partition was asked and what it found.
struct PartitionReport {
  std::string profile;  // path
  ProfileGraph graph;
  std::string method;
  GraphPartitionRequest request;
  GraphPartition partition;
  double planning_seconds = 0;
};

// A table with a row for each stage, for people.
std::string PartitionText(const PartitionReport& report);
// The same figures as one JSON object.
std::string PartitionJson(const PartitionReport& report);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_PARTITION_REPORT_H_
