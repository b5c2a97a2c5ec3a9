/* Splits the difference of two cases over phases and over steps. */
#include "compare_parts.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define IDLE_NAME "(idle between launches)"
#define REST_NAME "(rest)"

static struct compared_part *add_part(struct compared_parts *parts, const char *name, double a_ns,
                                      double b_ns) {
    if (parts->count == COMPARE_PARTS)
        return NULL;
    struct compared_part *part = &parts->list[parts->count++];
    snprintf(part->name, sizeof part->name, "%s", name);
    part->a_ns = a_ns;
    part->b_ns = b_ns;
    part->difference_ns = b_ns - a_ns;
    return part;
}

/* --- phases: a phase is the set of the parts of its name -------------------------------------- */

#define NAMES_MOST 64

struct part_names {
    char names[NAMES_MOST][64];
    size_t count;
};

/* The bit of a name; 0 where there are too many. */
static uint64_t name_bit(struct part_names *known, const char *name) {
    for (size_t i = 0; i < known->count; i++)
        if (strcmp(known->names[i], name) == 0)
            return UINT64_C(1) << i;
    if (known->count == NAMES_MOST)
        return 0;
    snprintf(known->names[known->count], sizeof *known->names, "%s", name);
    return UINT64_C(1) << known->count++;
}

static uint64_t name_bits(struct part_names *known, const char *name) {
    char copy[64], *rest = copy;
    uint64_t bits = 0;

    snprintf(copy, sizeof copy, "%s", name);
    for (char *part; (part = strsep(&rest, "+"));)
        bits |= name_bit(known, part);
    return bits;
}

/* Merges `bits` with every group that shares a part with it. */
static void merge(uint64_t *groups, size_t *count, uint64_t bits) {
    for (size_t i = 0; i < *count;) {
        if (groups[i] & bits) {
            bits |= groups[i];
            groups[i] = groups[--*count];
            i = 0;
        } else {
            i++;
        }
    }
    groups[(*count)++] = bits;
}

static void group_phases(const struct case_summary *c, struct part_names *known, uint64_t *groups,
                         size_t *count) {
    for (size_t i = 0; i < c->phase_count && *count < NAMES_MOST; i++) {
        uint64_t bits = name_bits(known, c->phases[i].name);
        if (bits)
            merge(groups, count, bits);
    }
}

/* Time of a side's phases in a group; 0 where it has none of them. */
static double group_ns(const struct case_summary *c, struct part_names *known, uint64_t group) {
    double sum_ns = 0;

    for (size_t i = 0; i < c->phase_count; i++)
        if (name_bits(known, c->phases[i].name) & group)
            sum_ns += c->phases[i].latency_ns.median;
    return sum_ns;
}

static void group_name(const struct part_names *known, uint64_t group, char *name, size_t size) {
    size_t used = 0;

    name[0] = '\0';
    for (size_t i = 0; i < known->count && used < size; i++)
        if (group >> i & 1)
            used += (size_t)snprintf(name + used, size - used, "%s%s", used > 0 ? "+" : "",
                                     known->names[i]);
}

static void add_rest(const struct case_summary *a, const struct case_summary *b,
                     struct compared_parts *out) {
    double a_ns = a->latency_ns.median, b_ns = b->latency_ns.median;

    for (size_t i = 0; i < out->count; i++) {
        a_ns -= out->list[i].a_ns;
        b_ns -= out->list[i].b_ns;
    }
    add_part(out, REST_NAME, a_ns, b_ns);
}

void compare_phases(const struct case_summary *a, const struct case_summary *b,
                    struct compared_parts *out) {
    struct part_names known = {.count = 0};
    uint64_t groups[NAMES_MOST + 1];
    size_t count = 0;

    out->count = 0;
    if (a->phase_count == 0 || b->phase_count == 0)
        return;
    /* Known parts first, so that groups are named and listed in the order of the model. */
    for (size_t i = 0; i < moe_phase_name_count; i++)
        name_bit(&known, moe_phase_names[i]);
    group_phases(a, &known, groups, &count);
    group_phases(b, &known, groups, &count);
    for (size_t bit = 0; bit < known.count; bit++) {
        for (size_t g = 0; g < count; g++) {
            char name[96];
            /* The group whose first part this is. */
            if ((groups[g] & (~groups[g] + 1)) != UINT64_C(1) << bit ||
                out->count + 2 >= COMPARE_PARTS)
                continue;
            group_name(&known, groups[g], name, sizeof name);
            add_part(out, name, group_ns(a, &known, groups[g]), group_ns(b, &known, groups[g]));
        }
    }
    if (!isnan(a->gap_ns) && !isnan(b->gap_ns))
        add_part(out, IDLE_NAME, a->gap_ns, b->gap_ns);
    add_rest(a, b, out);
}

/* --- steps ------------------------------------------------------------------------------------ */

void compare_steps(const struct waterfall *a, const struct waterfall *b,
                   struct compared_parts *out) {
    double a_rest_ns = 0, b_rest_ns = 0;

    out->count = 0;
    if (isnan(a->t_sol_ns) || isnan(b->t_sol_ns))
        return;
    add_part(out, "bound", a->t_sol_ns, b->t_sol_ns);
    for (int s = 0; s < STEP_UNEXPLAINED; s++) {
        double a_ns = a->steps[s].ns, b_ns = b->steps[s].ns;
        if (isnan(a_ns) != isnan(b_ns)) {
            a_rest_ns += isnan(a_ns) ? 0 : a_ns;
            b_rest_ns += isnan(b_ns) ? 0 : b_ns;
            a_ns = b_ns = NAN;
        }
        add_part(out, waterfall_rows[s].name, a_ns, b_ns);
    }
    add_part(out, waterfall_rows[STEP_UNEXPLAINED].name, a->steps[STEP_UNEXPLAINED].ns + a_rest_ns,
             b->steps[STEP_UNEXPLAINED].ns + b_rest_ns);
}

/* --- means ------------------------------------------------------------------------------------ */

static struct compared_part *find_part(struct compared_parts *parts, const char *name) {
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->list[i].name, name) == 0)
            return &parts->list[i];
    return NULL;
}

/* NaN stays only where no case has a figure. */
static void add_share(double *sum, double value) {
    if (!isnan(value))
        *sum = (isnan(*sum) ? 0 : *sum) + value;
}

void add_parts(const struct compared_parts *parts, size_t count, struct compared_parts *mean) {
    for (size_t i = 0; i < parts->count; i++) {
        const struct compared_part *part = &parts->list[i];
        struct compared_part *into = find_part(mean, part->name);
        if (!into)
            into = add_part(mean, part->name, NAN, NAN);
        if (!into)
            continue;
        add_share(&into->a_ns, part->a_ns / (double)count);
        add_share(&into->b_ns, part->b_ns / (double)count);
        add_share(&into->difference_ns, part->difference_ns / (double)count);
    }
}

const struct compared_part *decisive_part(const struct compared_parts *parts, double total_ns) {
    const struct compared_part *most = NULL;

    for (size_t i = 0; i < parts->count; i++) {
        const struct compared_part *part = &parts->list[i];
        if (!(part->difference_ns * total_ns > 0))
            continue;
        if (!most || fabs(part->difference_ns) > fabs(most->difference_ns))
            most = part;
    }
    return most;
}
