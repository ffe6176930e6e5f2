#include "planner/units.h"
