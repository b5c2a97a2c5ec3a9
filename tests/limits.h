/* Time and memory limits of tests: they hold for the command as it is shipped, and are out of reach
 * of a build with sanitizers. */
#ifndef MOESOL_TESTS_LIMITS_H
#define MOESOL_TESTS_LIMITS_H

#ifdef __SANITIZE_ADDRESS__
static const double limit_factor = 20;
static const int work_divisor = 10; /* where it is the amount that is tested, less of it will do */
#else
static const double limit_factor = 1;
static const int work_divisor = 1;
#endif

#endif
