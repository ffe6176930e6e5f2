#ifndef SIPHON_TESTS_SUPPORT_SANITIZED_H_
#define SIPHON_TESTS_SUPPORT_SANITIZED_H_

namespace siphon {

// Whether this build has a sanitizer, under which tests take five to sixty times as long: a
// property over many shapes then looks at some of them, since more would show no other access to
// memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace siphon

#endif  // SIPHON_TESTS_SUPPORT_SANITIZED_H_
