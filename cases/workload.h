/* Between the readers of definition.json and of workload.jsonl: what the one knows and the other
 * needs. definition.h is for everybody else. */
#ifndef MOESOL_CASES_WORKLOAD_H
#define MOESOL_CASES_WORKLOAD_H

#include <jansson.h>

#include "definition.h"

/* The axes of the problem, by what they are to it. */
enum axis_role { ROLE_TOKENS, ROLE_HIDDEN, ROLE_INTERMEDIATE, ROLE_EXPERTS, ROLE_TOPK, ROLE_COUNT };
extern const char *const axis_role_keys[ROLE_COUNT]; /* "batch_seq_len", ...: suite.json's keys */

#define PROBLEM_INPUTS 6
extern const char *const problem_input_names[PROBLEM_INPUTS];

struct definition {
    json_t *root;
    const char *name;
    const json_t *axes;
    const char *axis_names[ROLE_COUNT]; /* what the definition calls each; of root */
    const char *entrypoint;             /* custom_inputs_entrypoint; NULL: none */
};

/* Which spelling of the match ratio the workloads used, and what they left out. */
struct workload_counts {
    size_t workloads, custom;
    size_t matched_ratio, match_ratio, both, no_ratio; /* required_matched_ratio, ..._match_... */
    size_t no_tolerance;                               /* without max_atol or without max_rtol */
};

/* Where something is wrong: a file, and the line of a file that has one object a line. */
struct place {
    const char *path;
    size_t line; /* 0: none */
    struct error *err;
};
int place_wrong(const struct place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Refuses the first key of an object that is not in the NULL-terminated table; `of` names the
 * object in the message: "tolerance: ", or "". */
int place_check_keys(const struct place *place, const char *of, const json_t *object,
                     const char *const *keys);

/* Appends suite.json's cases to the array, one a line of the file. */
int workload_read(const struct definition *definition, const struct problem_file *file,
                  json_t *cases, struct workload_counts *counts, struct error *err);

#endif
