# The package snug in build/python (extension and Python files) and build/venv, in which it can be imported; where there
# is an interpreter with its headers, Debian's first. The extension has the library's objects in it, all symbols hidden.
find_program(SNUG_PYTHON python3 HINTS /usr/bin DOC "Interpreter that the extension is built for")
if(SNUG_PYTHON)
  execute_process(COMMAND ${SNUG_PYTHON} -c "import sys, sysconfig; sys.version_info >= (3, 11) and print(sysconfig.get_paths()['include'], end='')"
    OUTPUT_VARIABLE SNUG_PYTHON_INCLUDE ERROR_QUIET)
endif()
set(SNUG_HAS_PYTHON OFF)
if(NOT SNUG_PYTHON_INCLUDE OR NOT EXISTS "${SNUG_PYTHON_INCLUDE}/Python.h")
  return()
endif()
set(SNUG_HAS_PYTHON ON)
file(GLOB SNUG_PYTHON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/*.c)
add_library(snug_extension MODULE ${SNUG_PYTHON_SOURCES})
target_include_directories(snug_extension SYSTEM PRIVATE ${SNUG_PYTHON_INCLUDE})
target_link_libraries(snug_extension PRIVATE snug_static ${CMAKE_DL_LIBS})
# Recording an operation goes through fifty short functions of these files: compiled here once more, as one program with
# the extension, it takes a fifth less time. Their objects in the archive are then not asked for.
include(CheckIPOSupported)
check_ipo_supported(RESULT SNUG_HAS_IPO OUTPUT SNUG_IPO_WHY LANGUAGES C)
if(SNUG_HAS_IPO AND NOT SNUG_SANITIZE)
  foreach(file memory/zone tensor/type op/table op/shape op/shape_map graph/graph graph/build record/record
      record/record_tensor eager/function eager/fold function/arguments function/functions_math)
    target_sources(snug_extension PRIVATE ${PROJECT_SOURCE_DIR}/src/${file}.c)
  endforeach()
  target_include_directories(snug_extension PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(snug_extension PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
endif()
set(SNUG_PACKAGE ${CMAKE_BINARY_DIR}/python/snug)
set_target_properties(snug_extension PROPERTIES PREFIX "" OUTPUT_NAME "_C.abi3" LIBRARY_OUTPUT_DIRECTORY ${SNUG_PACKAGE})
target_link_options(snug_extension PRIVATE -Wl,--exclude-libs,ALL -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/extension.map)

add_custom_target(snug_package ALL
  COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/python/snug ${SNUG_PACKAGE}
  COMMAND ${SNUG_PYTHON} -m compileall -q ${SNUG_PACKAGE}
  DEPENDS snug_extension VERBATIM)
set(SNUG_VENV_PYTHON ${CMAKE_BINARY_DIR}/venv/bin/python)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/venv/pyvenv.cfg
  COMMAND ${SNUG_PYTHON} -m venv --system-site-packages --without-pip ${CMAKE_BINARY_DIR}/venv
  COMMAND ${SNUG_VENV_PYTHON} -c "import pathlib, sysconfig; pathlib.Path(sysconfig.get_paths()['purelib'], 'snug.pth').write_text('${CMAKE_BINARY_DIR}/python')"
  VERBATIM)
add_custom_target(snug_venv ALL DEPENDS ${CMAKE_BINARY_DIR}/venv/pyvenv.cfg)
