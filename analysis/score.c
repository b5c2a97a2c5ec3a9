/* SOL fraction, SOL score and ratio. */
#include "score.h"

#include <math.h>

double sol_fraction(double t, double t_sol) { return t > 0 ? t_sol / t : NAN; }

double sol_score(double t, double t_sol, double t_baseline) {
    double headroom = t_baseline - t_sol;

    if (!(headroom > 0) || !(t > 0))
        return NAN;
    double denominator = 1 + (t - t_sol) / headroom;
    return denominator > 0 ? 1 / denominator : NAN;
}

double latency_ratio(double t, double t_best) { return t_best > 0 ? t / t_best : NAN; }
