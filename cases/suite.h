/* A suite: a folder with `suite.json`, read into cases. Suite files are untrusted input. */
#ifndef MOESOL_CASES_SUITE_H
#define MOESOL_CASES_SUITE_H

#include "../core/error.h"
#include "case.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SUITE_MAX_CASES 256
#define SUITE_EXPERTS_MOST (1 << 16)

/* How topk_idx is drawn (draw.h). */
enum suite_routing { ROUTING_UNIFORM = 0, ROUTING_ZIPF = 1, ROUTING_ONE_HOT = 2 };

struct suite_case {
    int number; /* 1-based, in suite order */
    struct moe_shape shape;
    double atol; /* NaN: atol_over_rms applies */
    double rtol;
    double matched_ratio; /* least share of elements within tolerance: its own or the suite's */
    /* Public B200 figures of the benchmark that the suite comes from; NaN where there are none. */
    double published_t_sol_ms;
    double published_t_baseline_ms;
    double published_t_baseline_remeasured_ms;
};

struct suite {
    char name[64];
    char title[128];
    char directory[512];
    char hash[65]; /* SHA-256 of suite.json, lower-case hex */
    uint64_t seed;
    enum suite_routing routing;
    double zipf_exponent; /* ROUTING_ZIPF */
    double hot_fraction;  /* ROUTING_ONE_HOT: share of tokens whose first slot is expert 0 */
    double atol_over_rms; /* where a case has no atol: atol = this times RMS of the reference */
    double matched_ratio; /* least share of a case's elements within tolerance */
    double token_matched_ratio; /* and of each token's; for all cases */
    bool ranked;                /* the source benchmark's own suite: has published bounds */
    struct suite_case cases[SUITE_MAX_CASES];
    size_t case_count;
};

/* Reads a suite by folder path or by name; a name is looked up in `cases/` of $MOESOL_DATA if set,
 * else of the source tree the command was built in or PREFIX/share/moesol. Returns 0, or -1 with
 * *err (a wrong name is EXIT_USAGE and offers the nearest). The caller owns *suite. */
int suite_read(const char *name_or_path, struct suite *suite, struct error *err);

/* The same from the text of a suite.json; `folder` is what it is said to stand in. */
int suite_parse(const char *text, size_t length, const char *folder, struct suite *suite,
                struct error *err);

/* The case of a number; NULL: none. */
const struct suite_case *suite_find_case(const struct suite *suite, double number);

/* What a case asks for, by its number; what the suite does where it has no such case. */
double suite_matched_ratio(const struct suite *suite, double number);

/* Names of the suites that can be found, sorted, NULL-terminated; free with suite_names_free(). */
char **suite_names(size_t *count);
void suite_names_free(char **names);

/* Path of a file under the data folder (`cases/`): e.g. data_path("devices.csv"). Writes at most
 * size bytes; returns -1 if there is no data folder. */
int data_path(const char *relative, char *path, size_t size, struct error *err);

/* Whether a case matches a --case pattern: its number ("3"), a range of numbers ("2-5"), its token
 * count ("T=2048"), or a comma-separated list of these. -1 if the pattern is malformed. */
int suite_case_matches(const struct suite_case *suite_case, const char *pattern);

#ifdef __cplusplus
}
#endif
#endif
