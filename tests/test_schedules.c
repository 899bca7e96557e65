/* test_schedules.c: learning rates of every schedule are Keras', to the last bit of an f32. */
#include "nn/schedule.h"
#include "support/schedules_golden.h"
#include "support/support.h"

static void test_rates_are_those_of_keras(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        snug_error err;
        sn_schedule s;
        expect_ok(sn_schedule_parse(schedules[i].text, &s, &err), &err);
        for (int k = 0; k < N_STEPS; k++) {
            const double rate = sn_schedule_rate(&s, steps[k]);
            if (rate != (double)schedules[i].rate[k])
                fail_msg("%s at step %d: %.9g, Keras has %.9g", schedules[i].text, steps[k], rate,
                         (double)schedules[i].rate[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_are_those_of_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
