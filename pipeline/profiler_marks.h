#ifndef SIPHON_PIPELINE_PROFILER_MARKS_H_
#define SIPHON_PIPELINE_PROFILER_MARKS_H_

#include <functional>
#include <string>

namespace siphon {

// Where a profiler that watches this process gets to know what a worker does: ranges of its thread,
// one within another. Empty: nobody watches, and no name is made.
struct ProfilerMarks {
  std::function<void(const std::string& name)> begin;
  std::function<void()> end;
};

}  // namespace siphon

#endif  // SIPHON_PIPELINE_PROFILER_MARKS_H_
