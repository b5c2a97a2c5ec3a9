/* Short names of device functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../profiler/launch_name.h"

static void expect(const char *demangled, const char *short_name) {
    char text[256];
    launch_name_shorten(demangled, text, sizeof(text));
    assert_string_equal(text, short_name);
}

static void test_cut(void **state) {
    (void)state;
    expect("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n", "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n");
    expect("swiglu(__half const*, __half*, long)", "swiglu");
    expect("void combine<8>(__half const*)", "combine");
    expect("void cutlass::Kernel2<cutlass_80_tensorop<int (*)(float)>>(Params)",
           "cutlass::Kernel2");
    expect("void a::outer<int>::inner<(a::Kind)1, (3>2)>(int)", "a::outer::inner");
    expect("(anonymous namespace)::gather(long const*)", "(anonymous namespace)::gather");
    expect("void (anonymous namespace)::down<(bool)1>(int)", "(anonymous namespace)::down");
}

static void test_odd(void **state) {
    char text[8];
    (void)state;
    expect("", "");
    expect("void cut<short", "cut");
    expect("<<>>", "<<>>");
    launch_name_shorten("a_very_long_name(int)", text, sizeof(text));
    assert_string_equal(text, "a_very_");
    launch_name_shorten("<<>>((((", text, sizeof(text));
    assert_string_equal(text, "<<>>(((");
    launch_name_shorten("name", text, 1);
    assert_string_equal(text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
