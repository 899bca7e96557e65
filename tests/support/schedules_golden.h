/* Made by tests/golden/schedules.py with TensorFlow 2.21.0, Keras 3.15.1. */
enum { N_STEPS = 12 };
static const int steps[N_STEPS] = {0, 1, 2, 5, 8, 10, 13, 29, 36, 59, 100, 12345};
static const struct {
    const char *text;
    float rate[N_STEPS];
} schedules[] = {
    {"exponential_decay(initial_learning_rate=0.1,decay_steps=7,decay_rate=0.9)",
     {0.100000001f, 0.0985061228f, 0.0970345587f, 0.0927504599f, 0.0886555091f, 0.0860264823f,
      0.0822283924f, 0.0646298602f, 0.0581668727f, 0.041146189f, 0.0221983865f, 0.0f}},
    {"exponential_decay(initial_learning_rate=0.03,decay_steps=10,decay_rate=0.96,staircase=true)",
     {0.0299999993f, 0.0299999993f, 0.0299999993f, 0.0299999993f, 0.0299999993f, 0.0287999995f,
      0.0287999995f, 0.0276479982f, 0.0265420768f, 0.0244611762f, 0.0199449733f, 3.97933784e-24f}},
    {"inverse_time_decay(initial_learning_rate=0.1,decay_steps=3,decay_rate=0.5)",
     {0.100000001f, 0.0857142881f, 0.0749999955f, 0.0545454584f, 0.0428571403f, 0.0375000015f,
      0.0315789469f, 0.0171428565f, 0.0142857144f, 0.00923076924f, 0.00566037744f,
      4.85790624e-05f}},
    {"polynomial_decay(initial_learning_rate=0.1,decay_steps=30,end_learning_rate=0.01,power=2.5)",
     {0.100000001f, 0.092686452f, 0.0857415944f, 0.0670544356f, 0.0514472872f, 0.0426598638f,
      0.031755127f, 0.0100182574f, 0.00999999978f, 0.00999999978f, 0.00999999978f, 0.00999999978f}},
    {"polynomial_decay(initial_learning_rate=0.1,decay_steps=7,end_learning_rate=0.01,power=0.5,"
     "cycle=true)",
     {0.100000001f, 0.0933238119f, 0.0860638842f, 0.0581070259f, 0.0689188316f, 0.0581070259f,
      0.0340535194f, 0.0472635403f, 0.0440168008f, 0.0326778665f, 0.0296396092f, 0.0114028128f}},
    {"cosine_decay(initial_learning_rate=0.1,decay_steps=37,alpha=0.01)",
     {0.100000001f, 0.0998216793f, 0.0992879942f, 0.095605813f, 0.0890127718f, 0.0832034051f,
      0.0727850869f, 0.0119872298f, 0.00117832399f, 0.00100000005f, 0.00100000005f,
      0.00100000005f}},
    {"cosine_decay(initial_learning_rate=0.01,decay_steps=30,alpha=0.1,warmup_target=0.3,warmup_"
     "steps=11)",
     {0.00999999978f, 0.0363636389f, 0.06272728f, 0.141818196f, 0.220909119f, 0.273636371f,
      0.29704994f, 0.123282678f, 0.0480865724f, 0.0300000012f, 0.0300000012f, 0.0300000012f}},
    {"cosine_decay_restarts(initial_learning_rate=0.1,first_decay_steps=9,t_mul=2,m_mul=0.9,alpha="
     "0.05)",
     {0.100000001f, 0.0971354023f, 0.0888871104f, 0.0442517065f, 0.00786459818f, 0.08985053f,
      0.0804983899f, 0.0813654736f, 0.0706809387f, 0.00732032675f, 0.0381170735f, 0.0295185633f}},
    {"cosine_decay_restarts(initial_learning_rate=0.1,first_decay_steps=9,t_mul=1,m_mul=0.9)",
     {0.100000001f, 0.0969846323f, 0.0883022174f, 0.0413175859f, 0.00301536615f, 0.0872861668f,
      0.052814167f, 0.0643723011f, 0.0656099916f, 0.0219578743f, 0.0304348022f, 0.0f}},
    {"piecewise_constant_decay(boundaries=[5,9],values=[0.1,0.05,0.01])",
     {0.100000001f, 0.100000001f, 0.100000001f, 0.100000001f, 0.0500000007f, 0.00999999978f,
      0.00999999978f, 0.00999999978f, 0.00999999978f, 0.00999999978f, 0.00999999978f,
      0.00999999978f}},
};
