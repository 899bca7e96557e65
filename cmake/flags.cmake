# Flags for every target of the project.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
if(SNUG_SANITIZE) # half the time to compile of -O1, and hardly slower: what runs there are checks, mostly
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-Og -g1")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-Og -g1 -DNDEBUG")
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wall> $<$<COMPILE_LANGUAGE:C,CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wconversion> $<$<COMPILE_LANGUAGE:C,CXX>:-Wvla> $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wshadow> $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  $<$<COMPILE_LANGUAGE:C,CXX>:-fno-math-errno>)
# Fused multiply-adds would make the same source give other bits on another machine.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>)
add_compile_definitions(_GNU_SOURCE)
# Numbers of 16 bits: a name of clang's own before its release 15, and what converts them is then in clang's own library.
if(CMAKE_C_COMPILER_ID STREQUAL "Clang" AND CMAKE_C_COMPILER_VERSION VERSION_LESS 15)
  add_compile_definitions(SN_HALF=__fp16)
  execute_process(COMMAND ${CMAKE_C_COMPILER} --rtlib=compiler-rt --print-libgcc-file-name OUTPUT_VARIABLE SNUG_CLANG_RUNTIME
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  link_libraries(${SNUG_CLANG_RUNTIME})
else()
  add_compile_definitions(SN_HALF=_Float16)
endif()
if(CMAKE_C_COMPILER_ID STREQUAL "Clang") # what gcc does not mean by the same words
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wno-missing-field-initializers> $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-pass-failed>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-sign-conversion> $<$<COMPILE_LANGUAGE:CXX>:-Wno-extern-c-compat>)
endif()
if(SNUG_FUZZ)
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-w -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_definitions(SN_REDZONES)
  add_link_options(-fsanitize=address,undefined)
endif()
if(SNUG_SANITIZE)
  add_compile_options(-w) # warnings are the plain build's; with less analysis some are wrong
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_definitions(SN_REDZONES)
  add_link_options(-fsanitize=address,undefined)
endif()
