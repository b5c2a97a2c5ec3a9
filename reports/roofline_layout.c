/* Layout of the roofline picture, in pixels. */
#include "roofline_layout.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int roofline_frame(const struct roofline *roofline, const struct rectangle *area,
                   struct roofline_frame *frame, struct error *err) {
    *frame = (struct roofline_frame){.x_least = INFINITY, .y_least = INFINITY, .area = *area};
    for (size_t i = 0; i < roofline->device_count; i++) {
        const struct roofline_device *device = &roofline->devices[i];
        bool known = device->datasheet.bytes_per_s > 0 && device->datasheet.flop_per_s > 0;
        const struct roofs *roofs = known ? &device->datasheet : &device->measured;
        double ridge = roofs->flop_per_s / roofs->bytes_per_s;
        if (!(ridge > 0) || !isfinite(ridge))
            continue;
        frame->x_least = fmin(frame->x_least, ridge / 200);
        frame->x_most = fmax(frame->x_most, ridge * 50);
        frame->y_least = fmin(frame->y_least, roofs->flop_per_s / 2000);
        frame->y_most = fmax(frame->y_most, roofs->flop_per_s * 2);
    }
    if (!isfinite(frame->x_least))
        return error_set(err, EXIT_FAILED,
                         "roofline: no roofs: the record has no measured ceilings and its device "
                         "no datasheet row; `moesol run` writes the ceilings into its records");
    return 0;
}

static double along(double value, double least, double most) {
    return log(value / least) / log(most / least);
}

bool roofline_place(const struct roofline_frame *frame, const struct roofline_point *point,
                    double *x, double *y) {
    double right = along(point->intensity, frame->x_least, frame->x_most);
    double up = along(point->flop_per_s, frame->y_least, frame->y_most);

    if (!(right >= 0 && right <= 1 && up >= 0 && up <= 1))
        return false;
    *x = frame->area.left + right * (frame->area.right - frame->area.left);
    *y = frame->area.bottom + up * (frame->area.top - frame->area.bottom);
    return true;
}

/* --- groups ----------------------------------------------------------------------------------- */

static int start_groups(const struct roofline *roofline, struct roofline_layout *layout,
                        struct error *err) {
    size_t count = roofline->point_count;

    layout->group_of = malloc((count + 1) * sizeof *layout->group_of);
    layout->groups = calloc(count + 1, sizeof *layout->groups);
    if (!layout->group_of || !layout->groups)
        return error_set(err, EXIT_FAILED, "out of memory for a roofline of %zu points", count);
    for (size_t i = 0; i < count; i++) {
        struct roofline_group *group = &layout->groups[layout->group_count];
        layout->group_of[i] = SIZE_MAX;
        if (!roofline_place(&layout->frame, &roofline->points[i], &group->x, &group->y)) {
            layout->outside += roofline->points[i].intensity > 0;
            continue;
        }
        group->members = malloc(sizeof *group->members);
        if (!group->members)
            return error_set(err, EXIT_FAILED, "out of memory for a roofline");
        group->members[0] = i;
        group->member_count = 1;
        group->record = roofline->points[i].record;
        layout->group_count++;
    }
    return 0;
}

/* The nearest two groups of one record, and their distance: infinite if no record has two. Groups
 * of a record stand together, so only neighbours up to the next record are looked at. */
static double nearest_pair(const struct roofline_layout *layout, size_t *first, size_t *second) {
    double nearest = INFINITY;

    for (size_t i = 0; i < layout->group_count; i++) {
        const struct roofline_group *a = &layout->groups[i];
        for (size_t j = i + 1; j < layout->group_count && layout->groups[j].record == a->record;
             j++) {
            double distance = hypot(a->x - layout->groups[j].x, a->y - layout->groups[j].y);
            if (distance < nearest) {
                nearest = distance;
                *first = i;
                *second = j;
            }
        }
    }
    return nearest;
}

static int merge_groups(struct roofline_layout *layout, size_t into, size_t from,
                        struct error *err) {
    struct roofline_group *a = &layout->groups[into], *b = &layout->groups[from];
    size_t total = a->member_count + b->member_count;
    size_t *members = realloc(a->members, total * sizeof *members);

    if (!members)
        return error_set(err, EXIT_FAILED, "out of memory for a roofline");
    a->members = members;
    memcpy(members + a->member_count, b->members, b->member_count * sizeof *members);
    double weight = (double)b->member_count / (double)total;
    a->x += (b->x - a->x) * weight;
    a->y += (b->y - a->y) * weight;
    a->member_count = total;
    free(b->members);
    memmove(b, b + 1, (layout->group_count - from - 1) * sizeof *b);
    layout->group_count--;
    return 0;
}

static int group_points(double merge_px, struct roofline_layout *layout, struct error *err) {
    for (;;) {
        size_t into = 0, from = 0;
        double distance = nearest_pair(layout, &into, &from);
        if (!isfinite(distance) || (distance >= merge_px && layout->group_count <= ROOFLINE_LABELS))
            return 0;
        if (merge_groups(layout, into, from, err) != 0)
            return -1;
    }
}

/* Moves a group's place from the middle of its points to the nearest of them, where its line ends.
 */
static void anchor_group(const struct roofline *roofline, const struct roofline_frame *frame,
                         struct roofline_group *group) {
    double x = group->x, y = group->y, nearest = INFINITY, member_x, member_y;

    for (size_t m = 0; m < group->member_count; m++) {
        if (!roofline_place(frame, &roofline->points[group->members[m]], &member_x, &member_y))
            continue;
        double distance = hypot(member_x - x, member_y - y);
        if (distance < nearest) {
            nearest = distance;
            group->x = member_x;
            group->y = member_y;
        }
    }
}

/* More records than labels: the first ones keep theirs. */
static void drop_groups(struct roofline_layout *layout) {
    while (layout->group_count > ROOFLINE_LABELS) {
        struct roofline_group *last = &layout->groups[--layout->group_count];
        layout->unlabelled += last->member_count;
        free(last->members);
    }
    for (size_t g = 0; g < layout->group_count; g++)
        for (size_t m = 0; m < layout->groups[g].member_count; m++)
            layout->group_of[layout->groups[g].members[m]] = g;
}

/* --- labels ----------------------------------------------------------------------------------- */

static bool overlaps(const struct rectangle *a, const struct rectangle *b) {
    return a->left < b->right && b->left < a->right && a->bottom < b->top && b->bottom < a->top;
}

static struct rectangle around(double x, double y, double half_width, double half_height) {
    return (struct rectangle){x - half_width, x + half_width, y - half_height, y + half_height};
}

static bool inside(const struct rectangle *box, const struct rectangle *area) {
    return box->left > area->left && box->right < area->right && box->bottom > area->bottom &&
           box->top < area->top;
}

/* Whether a roof runs through a box: its corners then lie on both sides. */
static bool roof_crosses(const struct roofline_frame *frame, const struct roofs *roofs,
                         const struct rectangle *box) {
    const double xs[] = {box->left, box->right}, ys[] = {box->bottom, box->top};
    const struct rectangle *area = &frame->area;
    int above = 0, corners = 0;

    if (!(roofs->bytes_per_s > 0) || !(roofs->flop_per_s > 0))
        return false;
    for (int i = 0; i < 2; i++) {
        double right = (xs[i] - area->left) / (area->right - area->left);
        double intensity = frame->x_least * pow(frame->x_most / frame->x_least, right);
        double roof = fmin(roofs->flop_per_s, intensity * roofs->bytes_per_s);
        double y =
            area->bottom + along(roof, frame->y_least, frame->y_most) * (area->top - area->bottom);
        for (int j = 0; j < 2; j++, corners++)
            above += ys[j] > y;
    }
    return above != 0 && above != corners;
}

static bool on_a_roof(const struct roofline *roofline, const struct roofline_frame *frame,
                      const struct rectangle *box) {
    for (size_t i = 0; i < roofline->device_count; i++)
        if (roof_crosses(frame, &roofline->devices[i].measured, box) ||
            roof_crosses(frame, &roofline->devices[i].datasheet, box))
            return true;
    return false;
}

static bool is_free(const struct roofline *roofline, const struct roofline_layout *layout,
                    size_t placed, const struct rectangle *keep_out, const struct rectangle *box) {
    double x, y;

    if (!inside(box, &layout->frame.area) || (keep_out && overlaps(box, keep_out)) ||
        on_a_roof(roofline, &layout->frame, box))
        return false;
    for (size_t i = 0; i < roofline->point_count; i++) {
        if (!roofline_place(&layout->frame, &roofline->points[i], &x, &y))
            continue;
        struct rectangle mark = around(x, y, 7, 7);
        if (overlaps(box, &mark))
            return false;
    }
    for (size_t g = 0; g < placed; g++) {
        struct rectangle other =
            around(layout->groups[g].label_x, layout->groups[g].label_y, 12, 11);
        if (overlaps(box, &other))
            return false;
    }
    return true;
}

/* Rings of growing radius around the group, beginning below right, where no roof runs. */
static void place_label(const struct roofline *roofline, struct roofline_layout *layout, size_t g,
                        const struct rectangle *keep_out) {
    static const double radii[] = {20, 30, 42, 56, 72, 90, 110, 132};
    static const double degrees[] = {-45, -90, 0, -135, 45, 135, 180, 90};
    struct roofline_group *group = &layout->groups[g];

    for (size_t r = 0; r < sizeof radii / sizeof *radii; r++)
        for (size_t d = 0; d < sizeof degrees / sizeof *degrees; d++) {
            double angle = degrees[d] * 3.14159265358979323846 / 180;
            group->label_x = group->x + radii[r] * cos(angle);
            group->label_y = group->y + radii[r] * sin(angle);
            struct rectangle box = around(group->label_x, group->label_y, 11, 10);
            if (is_free(roofline, layout, g, keep_out, &box))
                return;
        }
}

int roofline_layout_build(const struct roofline *roofline, const struct roofline_frame *frame,
                          double merge_px, const struct rectangle *keep_out,
                          struct roofline_layout *layout, struct error *err) {
    memset(layout, 0, sizeof *layout);
    layout->frame = *frame;
    if (start_groups(roofline, layout, err) != 0 || group_points(merge_px, layout, err) != 0) {
        roofline_layout_free(layout);
        return -1;
    }
    drop_groups(layout);
    for (size_t g = 0; g < layout->group_count; g++)
        anchor_group(roofline, frame, &layout->groups[g]);
    for (size_t g = 0; g < layout->group_count; g++)
        place_label(roofline, layout, g, keep_out);
    return 0;
}

void roofline_layout_free(struct roofline_layout *layout) {
    for (size_t g = 0; g < layout->group_count; g++)
        free(layout->groups[g].members);
    free(layout->groups);
    free(layout->group_of);
    memset(layout, 0, sizeof *layout);
}
