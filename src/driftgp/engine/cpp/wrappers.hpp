// All nodes besides the AGP.

#pragma once

#include "bank.hpp"
#include "calibrated.hpp"
#include "carry.hpp"
#include "guarded.hpp"
#include "members.hpp"
#include "standardize.hpp"
#include "watched.hpp"
#include "within.hpp"
