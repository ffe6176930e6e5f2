#ifndef SIPHON_PIPELINE_TORCH_CALL_TORCH_H_
#define SIPHON_PIPELINE_TORCH_CALL_TORCH_H_

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "pipeline/torch/aten.h"
#include "pipeline/torch/determinism.h"

namespace siphon {
namespace call_torch_internal {

template <typename T>
struct Result {
  using type = absl::StatusOr<T>;
};
template <>
struct Result<void> {
  using type = absl::Status;
};
template <>
struct Result<absl::Status> {
  using type = absl::Status;
};
template <typename T>
struct Result<absl::StatusOr<T>> {
  using type = absl::StatusOr<T>;
};

}  // namespace call_torch_internal

// Where LibTorch's exceptions end: calls `fn` and returns its result, or a status that says what we
// were `doing`. A void `fn` gives a Status; one that returns a Status or StatusOr itself gives
// that. Errors: ResourceExhausted when the worker's memory is full, InvalidArgument for an operator
// that is refused because it is not deterministic, Internal for whatever else was thrown.
template <typename Fn>
auto CallTorch(absl::string_view doing, Fn&& fn) ->
    typename call_torch_internal::Result<std::invoke_result_t<Fn>>::type {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn>>) {
      std::forward<Fn>(fn)();
      return absl::OkStatus();
    } else {
      return std::forward<Fn>(fn)();
    }
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(doing, ": ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    if (const auto operation = OperatorWithoutDeterminism(error.what_without_backtrace())) {
      return absl::InvalidArgumentError(absl::StrCat(doing, ": ", NoDeterminismText(*operation)));
    }
    return absl::InternalError(
        absl::StrCat("LibTorch: ", doing, ": ", error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(doing, ": the machine's memory is full"));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("LibTorch: ", doing, ": ", error.what()));
  } catch (...) {  // a user's layer may throw anything
    return absl::InternalError(
        absl::StrCat(doing, ": something was thrown that is not a std::exception"));
  }
}

}  // namespace siphon

#endif  // SIPHON_PIPELINE_TORCH_CALL_TORCH_H_
