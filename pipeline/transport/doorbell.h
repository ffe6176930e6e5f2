#ifndef SIPHON_PIPELINE_TRANSPORT_DOORBELL_H_
#define SIPHON_PIPELINE_TRANSPORT_DOORBELL_H_

#include <chrono>
#include <cstdint>

namespace siphon {

// How a worker sleeps until another one has news for it, in shared memory, without burning the
// processor that the other one needs: with more workers than cores, a waiter that only yields takes
// its fair share of the time from those that compute. Nothing is lost between looking and sleeping:
// the sleeper announces itself before its last look, the ringer publishes its news before it looks
// for sleepers, all with sequentially consistent accesses.
//
// Zero bytes are a valid doorbell. One worker sleeps on it, any number ring it; from any thread and
// process.
struct alignas(64) Doorbell {
  uint32_t rings;
  uint32_t sleeping;
};

// Announces the sleeper. Look for news after it, with sequentially consistent loads, and then call
// Sleep or StayAwake. Returns what Sleep needs.
uint32_t PrepareToSleep(Doorbell& bell);
// Returns when the bell has rung since PrepareToSleep, or after `limit`, or at any time earlier.
void Sleep(Doorbell& bell, uint32_t prepared, std::chrono::microseconds limit);
void StayAwake(Doorbell& bell);
// Wakes the sleeper, if there is one; otherwise a single load. Requires: the news were stored
// sequentially consistent.
void Ring(Doorbell& bell);

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TRANSPORT_DOORBELL_H_
