#ifndef SIPHON_LAUNCH_COMMANDS_SIMULATE_REPORT_H_
#define SIPHON_LAUNCH_COMMANDS_SIMULATE_REPORT_H_

#include <string>

#include "launch/output/timeline_page.h"
#include "launch/output/timeline_text.h"
#include "planner/plan_text.h"
#include "planner/simulator/simulated_step.h"

namespace siphon {

// A predicted step as `siphon simulate` shows it.
struct SimulateReport {
  PlanText plan;
  SimulatedStep step;
};

// For people: the workers over time in `columns` letters, both idle fractions, memory of each
// worker by kind, tensors by choice of the memory plan, links, exposed waits by cause.
std::string ReportText(const SimulateReport& report, int columns, TextColors colors);

// One object: step_seconds, bubble_fraction, inner_idle_fraction, peak_bytes[],
// peak_live_activations[], link_bytes[], and beside the contract's fields memory[] by kind,
// links[], channels[], exposed_wait_seconds[], strategy, mapping[] (worker to device), choices
// (bytes by placement), host_peak_bytes, other_peaks[], planned_step_seconds and
// lower_bound_seconds (0: the plan does not say).
std::string ReportJson(const SimulateReport& report);

// The same as a page.
TimelinePage ReportPage(const SimulateReport& report);

}  // namespace siphon

#endif  // SIPHON_LAUNCH_COMMANDS_SIMULATE_REPORT_H_
