#include "launch/output/action_colors.h"

#include <cstddef>

namespace siphon {
namespace {

enum Row : size_t { kF, kB, kI, kW, kStep, kRecompute, kMemory, kMessage, kWaiting };

size_t RowOf(const Interval& interval) {
  if (interval.kind == IntervalKind::kWait) return kWaiting;
  switch (interval.action.kind) {
    case ActionKind::kForward:
      return kF;
    case ActionKind::kBackward:
      return kB;
    case ActionKind::kBackwardInput:
      return kI;
    case ActionKind::kBackwardWeight:
      return kW;
    case ActionKind::kReduceGradient:
    case ActionKind::kReduceNorm:
    case ActionKind::kStep:
    case ActionKind::kUpdate:
      return kStep;
    case ActionKind::kRecompute:
      return kRecompute;
    default:
      return IsMemory(interval.action.kind) ? kMemory : kMessage;
  }
}

}  // namespace

// The hex values are those that the Chromium trace viewer gives its reserved names.
const std::vector<ActionColor>& ActionColors() {
  static const auto* const colors = new std::vector<ActionColor>{
      {"F", "forward", "#4387fd", "rail_response", 69, '='},
      {"B", "backward", "#0da861", "rail_load", 35, '#'},
      {"I", "input backward", "#00b4b4", "background_memory_dump", 37, '-'},
      {"W", "weight backward", "#ee8e00", "rail_idle", 208, '+'},
      {"step", "optimizer step and what leads to it", "#7d7d7d", "generic_work", 244, 's'},
      {"recompute", "recomputation", "#c79b7d", "thread_state_unknown", 180, 'r'},
      {"memory", "swapping", "#b67d8f", "thread_state_uninterruptible", 139, '~'},
      {"message", "messages", "#85a0d2", "thread_state_runnable", 110, 'm'},
      {"wait", "waiting", "#dddddd", "grey", 0, '.'},
  };
  return *colors;
}

const ActionColor& ColorOf(const Interval& interval) { return ActionColors()[RowOf(interval)]; }

}  // namespace siphon
