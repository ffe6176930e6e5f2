#include "planner/model_spec.h"
