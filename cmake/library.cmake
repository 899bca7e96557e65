# libsnug (shared and static) and the command.
foreach(room ${SNUG_ROOMS})
  file(GLOB room_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.c)
  list(APPEND SNUG_SOURCES ${room_sources})
endforeach()

# Own kernels are compiled once per instruction set; cpu_device.c, speed.c and the files of oneDNN and LAPACK once.
# -fno-trapping-math changes no result: it lets comparisons on floats become vector selects. Of OpenMP they use `simd`
# alone: threads are the engine's own (memory/team.h). -g1: lines, for a fifth less time to compile.
set(SNUG_KERNELS ${SNUG_SOURCES})
list(FILTER SNUG_KERNELS INCLUDE REGEX "/kernels/cpu/")
list(FILTER SNUG_KERNELS EXCLUDE REGEX "/kernels/cpu/(cpu_device|speed|onednn[a-z_]*|lapack[a-z_]*)\\.c$")
list(REMOVE_ITEM SNUG_SOURCES ${SNUG_KERNELS})
set(isa_flags_base "")
set(isa_flags_avx2 -mavx2 -mfma -mf16c)
set(isa_flags_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c -mprefer-vector-width=512)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(SNUG_ISAS base avx2 avx512 CACHE STRING "Instruction sets to compile the own kernels for")
else()
  set(SNUG_ISAS base CACHE STRING "Instruction sets to compile the own kernels for")
endif()
set(kernel_level -O3)
if(SNUG_FUZZ) # they read no files, and clang takes minutes to see where they go
  set(kernel_level -O1 -fno-sanitize=all)
elseif(SNUG_SANITIZE)
  set(kernel_level -O1)
endif()
foreach(isa ${SNUG_ISAS})
  if(SNUG_KERNELS)
    add_library(snug_kernels_${isa} OBJECT ${SNUG_KERNELS})
    target_compile_options(snug_kernels_${isa} PRIVATE ${kernel_level} -g1 -ffp-contract=off -fno-trapping-math -fopenmp-simd ${isa_flags_${isa}})
    target_compile_definitions(snug_kernels_${isa} PRIVATE SN_ISA=${isa})
    target_include_directories(snug_kernels_${isa} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
    list(APPEND SNUG_KERNEL_OBJECTS $<TARGET_OBJECTS:snug_kernels_${isa}>)
  endif()
  string(TOUPPER ${isa} isa_upper)
  list(APPEND SNUG_ISA_DEFINITIONS SN_HAS_ISA_${isa_upper}=1)
endforeach()

# Random numbers and conversions: vectors as in kernels, in rooms above them.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/base/rng.c ${PROJECT_SOURCE_DIR}/src/tensor/recipe.c
  ${PROJECT_SOURCE_DIR}/src/tensor/convert.c PROPERTIES COMPILE_OPTIONS "${kernel_level};-fno-trapping-math")
add_library(snug_objects OBJECT ${SNUG_SOURCES})
target_compile_definitions(snug_objects PRIVATE ${SNUG_ISA_DEFINITIONS})
target_compile_options(snug_objects PRIVATE -fopenmp-simd)
if(CMAKE_LIBRARY_ARCHITECTURE) # where Debian has its own LAPACK, whichever liblapack.so.3 is
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/kernels/cpu/lapack_library.c PROPERTIES COMPILE_DEFINITIONS
    SN_LIBRARY_FOLDER="${CMAKE_LIBRARY_ARCHITECTURE}")
endif()
target_include_directories(snug_objects PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${DNNL_INCLUDE})
target_link_libraries(snug_objects PRIVATE PkgConfig::JANSSON JPEG::JPEG PNG::PNG ZLIB::ZLIB)

add_library(snug SHARED $<TARGET_OBJECTS:snug_objects> ${SNUG_KERNEL_OBJECTS})
add_library(snug_static STATIC $<TARGET_OBJECTS:snug_objects> ${SNUG_KERNEL_OBJECTS})
set_target_properties(snug PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/snug.map)
set_target_properties(snug_static PROPERTIES OUTPUT_NAME snug)
target_link_options(snug PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/snug.map -Wl,--no-undefined)
foreach(lib snug snug_static)
  target_include_directories(${lib} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${lib} PRIVATE PkgConfig::JANSSON JPEG::JPEG PNG::PNG ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS} m)
endforeach()

# The command; all but its main is an archive, for tools/cli_words reads its tables.
file(GLOB SNUG_CLI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.c)
list(REMOVE_ITEM SNUG_CLI_SOURCES ${PROJECT_SOURCE_DIR}/src/cli/main.c)
add_library(snug_cli STATIC ${SNUG_CLI_SOURCES})
target_include_directories(snug_cli PUBLIC ${PROJECT_SOURCE_DIR}/src/cli)
target_link_libraries(snug_cli PUBLIC snug_static PkgConfig::JANSSON m)
add_executable(snug_command ${PROJECT_SOURCE_DIR}/src/cli/main.c)
set_target_properties(snug_command PROPERTIES OUTPUT_NAME snug)
target_link_libraries(snug_command PRIVATE snug_cli)
