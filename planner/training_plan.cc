#include "planner/training_plan.h"
