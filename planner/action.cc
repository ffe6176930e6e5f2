#include "planner/action.h"
