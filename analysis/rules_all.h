/* The rules' functions, and what they share. */
#ifndef MOESOL_ANALYSIS_RULES_ALL_H
#define MOESOL_ANALYSIS_RULES_ALL_H

#include "rules.h"

typedef bool rule_function(const struct rule_context *context, struct finding *finding);

/* rules_memory.c */
rule_function rule_memory_at_roof, rule_memory_under_roof, rule_extra_bytes, rule_token_traffic;
/* rules_tensor.c */
rule_function rule_tensor_at_roof, rule_tensor_under_roof, rule_padding, rule_tensor_instructions,
    rule_power_cap;
/* rules_launch.c */
rule_function rule_launch_bound, rule_skewed_routing, rule_small_grid, rule_tail,
    rule_low_occupancy, rule_far_below;
/* rules_counters.c */
rule_function rule_stalls, rule_no_counters, rule_local_memory;

/* Adds to finding->seen, "; " before all but the first. */
void finding_see(struct finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A phase below this share of the latency is no rule's business. */
#define RULE_PHASE_SHARE 0.01
/* A finding worth less than this share of the latency is not one. */
#define RULE_LEAST_SHARE 0.005
/* From this share of a roof on, a phase counts as being at it. */
#define RULE_AT_ROOF 0.85

bool phase_matters(const struct rule_context *context, const struct phase_terms *phase);
/* Whether DRAM, or the tensor pipe, takes the larger part of the phase's roof. */
bool memory_bound(const struct phase_terms *phase);
bool tensor_bound(const struct phase_terms *phase);
/* ns as a share of the latency. */
double latency_share(const struct rule_context *context, double ns);

#endif
