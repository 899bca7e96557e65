"""schedules.py: learning rates of Keras' schedules at some steps, for tests/test_schedules.c; in f64 models, too, Keras computes
them in f32.

    python schedules.py ../support/schedules_golden.h
"""
import sys

import keras
import numpy as np
import tensorflow as tf

keras.config.set_floatx("float64")
S = keras.optimizers.schedules
STEPS = [0, 1, 2, 5, 8, 10, 13, 29, 36, 59, 100, 12345]
CASES = {
    "exponential_decay(initial_learning_rate=0.1,decay_steps=7,decay_rate=0.9)": S.ExponentialDecay(0.1, 7, 0.9),
    "exponential_decay(initial_learning_rate=0.03,decay_steps=10,decay_rate=0.96,staircase=true)": S.ExponentialDecay(0.03, 10, 0.96, staircase=True),
    "inverse_time_decay(initial_learning_rate=0.1,decay_steps=3,decay_rate=0.5)": S.InverseTimeDecay(0.1, 3, 0.5),
    "polynomial_decay(initial_learning_rate=0.1,decay_steps=30,end_learning_rate=0.01,power=2.5)": S.PolynomialDecay(0.1, 30, 0.01, power=2.5),
    "polynomial_decay(initial_learning_rate=0.1,decay_steps=7,end_learning_rate=0.01,power=0.5,cycle=true)": S.PolynomialDecay(0.1, 7, 0.01, power=0.5, cycle=True),
    "cosine_decay(initial_learning_rate=0.1,decay_steps=37,alpha=0.01)": S.CosineDecay(0.1, 37, alpha=0.01),
    "cosine_decay(initial_learning_rate=0.01,decay_steps=30,alpha=0.1,warmup_target=0.3,warmup_steps=11)": S.CosineDecay(
        0.01, 30, alpha=0.1, warmup_target=0.3, warmup_steps=11),
    "cosine_decay_restarts(initial_learning_rate=0.1,first_decay_steps=9,t_mul=2,m_mul=0.9,alpha=0.05)": S.CosineDecayRestarts(0.1, 9, 2.0, 0.9, 0.05),
    "cosine_decay_restarts(initial_learning_rate=0.1,first_decay_steps=9,t_mul=1,m_mul=0.9)": S.CosineDecayRestarts(0.1, 9, 1.0, 0.9),
    "piecewise_constant_decay(boundaries=[5,9],values=[0.1,0.05,0.01])": S.PiecewiseConstantDecay([5, 9], [0.1, 0.05, 0.01]),
}
with open(sys.argv[1], "w") as out:
    out.write("/* Made by tests/golden/schedules.py with TensorFlow %s, Keras %s. */\n" % (tf.__version__, keras.__version__))
    out.write("enum { N_STEPS = %d };\nstatic const int steps[N_STEPS] = {%s};\n" % (len(STEPS), ", ".join(map(str, STEPS))))
    out.write("static const struct {\n    const char *text;\n    float rate[N_STEPS];\n} schedules[] = {\n")
    for text, schedule in CASES.items():
        rates = [float(np.asarray(schedule(np.int64(k)), dtype=np.float32)) for k in STEPS]
        out.write('    {"%s",\n     {%s}},\n' % (text, ",\n      ".join("%.9gf" % r if "." in "%.9g" % r or "e" in "%.9g" % r else "%.9g.0f" % r for r in rates)))
    out.write("};\n")
