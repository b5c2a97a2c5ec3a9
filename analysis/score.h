/* How a latency stands against a bound and a baseline. NaN in, NaN out: never 0 for unknown. */
#ifndef MOESOL_ANALYSIS_SCORE_H
#define MOESOL_ANALYSIS_SCORE_H

#include <stddef.h>

/* T_SOL / T. */
double sol_fraction(double t, double t_sol);

/* 1 / (1 + (T - T_SOL) / (T_b - T_SOL)): 1 at the bound, 1/2 at the baseline. NaN unless
 * T_b > T_SOL, and for a T so far below T_SOL that the formula has no meaning. */
double sol_score(double t, double t_sol, double t_baseline);

/* T / best T. */
double latency_ratio(double t, double t_best);

#endif
