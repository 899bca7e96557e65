# The GPU plug-in libsnug-cuda.so, where nvcc is found; the tests make libsnug-cuda-emulated.so of the same files.
# Nothing links to them: the core loads one on demand. They take what they need of the core out of the archive, so that
# no symbol of one is seen by the other.
file(GLOB SNUG_CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)

function(snug_cuda_plugin target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE snug_static ${CMAKE_DL_LIBS})
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/cuda.map -Wl,--no-undefined
    -Wl,--gc-sections -Wl,--as-needed)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/cuda.map)
endfunction()

find_program(SNUG_NVCC nvcc PATHS /usr/local/cuda/bin)
option(SNUG_CUDA "Build the GPU plug-in where nvcc is found" ON)
if(SNUG_CUDA AND SNUG_NVCC AND NOT SNUG_SANITIZE)
  set(CMAKE_CUDA_COMPILER ${SNUG_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES 90) # machine code of it, and PTX for what comes later
  enable_language(CUDA)
  add_library(snug_cuda SHARED ${SNUG_CUDA_SOURCES})
  set_target_properties(snug_cuda PROPERTIES OUTPUT_NAME snug-cuda CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Static
    CUDA_VISIBILITY_PRESET hidden)
  # A stack frame costs device memory for every thread the card can hold: it fails the build.
  target_compile_options(snug_cuda PRIVATE -Xptxas=--warn-on-local-memory-usage,--warning-as-error --expt-relaxed-constexpr
    -Xcompiler=-Wall,-Wextra,-Werror,-Wno-missing-field-initializers,-Wno-unknown-pragmas,-ffp-contract=off)
  snug_cuda_plugin(snug_cuda)
  # The Python package looks for it beside its extension.
  add_custom_command(TARGET snug_cuda POST_BUILD COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/python/snug
    COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:snug_cuda> ${CMAKE_BINARY_DIR}/python/snug VERBATIM)
  set(SNUG_HAS_CUDA ON)
endif()
