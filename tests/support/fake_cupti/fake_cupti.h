#ifndef SIPHON_TESTS_SUPPORT_FAKE_CUPTI_FAKE_CUPTI_H_
#define SIPHON_TESTS_SUPPORT_FAKE_CUPTI_FAKE_CUPTI_H_

#include <cstddef>
#include <cstdint>

// How tests talk to the fake CUPTI, by dlsym: it delivers the records that they give it, in buffers
// of whoever records, when these are flushed.
extern "C" {
// A record as cupti_activity.h has it; a copy is kept.
void siphon_fake_cupti_add(const void* record, size_t bytes);
// Whether records of that kind are wanted.
int siphon_fake_cupti_enabled(int kind);
// So many records at most go into one buffer; 0: as many as fit.
void siphon_fake_cupti_limit(size_t records);
}

#endif  // SIPHON_TESTS_SUPPORT_FAKE_CUPTI_FAKE_CUPTI_H_
