/* isa.h: names of a build. Every kernel file is compiled once per instruction set with SN_ISA
 * defined as base, avx2 or avx512; what it shares with other files it names SN_CPU(x), e.g.
 * sn_cpu_exp_avx512. */
#ifndef SN_KERNELS_CPU_ISA_H
#define SN_KERNELS_CPU_ISA_H

#ifndef SN_ISA
#error "kernel files are compiled with SN_ISA"
#endif

#define SN_CPU_JOIN2(name, isa) sn_cpu_##name##_##isa
#define SN_CPU_JOIN(name, isa)  SN_CPU_JOIN2(name, isa)
#define SN_CPU(name)            SN_CPU_JOIN(name, SN_ISA)

/* Defines a family: SN_CPU_FAMILY(exp, .reference = reference_exp, .run = run_exp) */
#define SN_CPU_FAMILY(name, ...)                                                                   \
    extern const sn_cpu_family SN_CPU(name);                                                       \
    const sn_cpu_family SN_CPU(name) = {__VA_ARGS__};

#endif
