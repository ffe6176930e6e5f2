#ifndef SIPHON_PLANNER_SENT_MEMORY_H_
#define SIPHON_PLANNER_SENT_MEMORY_H_

namespace siphon {

// How long a worker holds a boundary tensor that it has sent.
enum class SentMemory {
  kUntilSent,  // until its message is through, by the times of the step
  // As long as it may have to, whatever the times are: to the end of the first action by which,
  // from the order of the programs alone, the receiver must have taken it, or the message so many
  // places behind it that a channel has room for (MessagesHeld).
  kUntilTaken,
};

}  // namespace siphon

#endif  // SIPHON_PLANNER_SENT_MEMORY_H_
