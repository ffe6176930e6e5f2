#ifndef SIPHON_LAUNCH_OUTPUT_TIMELINE_PICTURE_H_
#define SIPHON_LAUNCH_OUTPUT_TIMELINE_PICTURE_H_

#include <string>
#include <vector>

#include "planner/simulator/simulated_step.h"
#include "planner/timeline.h"
#include "planner/units.h"

namespace siphon {

// One row of a picture of time: what a worker, or something else that is busy now and then, did.
struct TimelineRow {
  std::string name;
  WorkerTimeline intervals;
};

// The memory of a worker, or of another holder, over the same time.
struct MemoryRow {
  std::string name;
  MemoryCurve curve;
  Bytes capacity;  // 0: no limit
};

// What is drawn: the same for predicted and measured steps. Time runs from 0 to `span`, which all
// rows share.
struct TimelinePicture {
  std::string title;
  Nanos span;
  std::vector<TimelineRow> rows;
  std::vector<MemoryRow> memory;     // below the rows, of workers; may be empty
  std::vector<MemoryRow> elsewhere;  // below that, of other holders; likewise
};

// A simulated step: its workers, then the lanes that carried messages or copies, then memory.
// `capacity` as in SimulationInput.
TimelinePicture PictureOf(const SimulatedStep& step, const std::vector<Bytes>& capacity,
                          std::string title);

// Both steps with the workers' rows in pairs, on one scale of time.
TimelinePicture ComparisonOf(const SimulatedStep& predicted,
                             const std::vector<WorkerTimeline>& measured, std::string title);

// End of the last interval.
Nanos EndOf(const std::vector<WorkerTimeline>& workers);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_OUTPUT_TIMELINE_PICTURE_H_
