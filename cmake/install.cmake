# Headers, libraries, pkg-config file and CMake package; the command with its completions and man pages.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS snug EXPORT SnugTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS snug_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(SNUG_HAS_CUDA)
  install(TARGETS snug_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS snug_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION ${CMAKE_INSTALL_DATADIR})
install(DIRECTORY include/snug DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT SnugTargets NAMESPACE Snug:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Snug)
configure_package_config_file(cmake/SnugConfig.cmake.in ${CMAKE_BINARY_DIR}/SnugConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Snug)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/SnugConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(cmake/snug.pc.in ${CMAKE_BINARY_DIR}/snug.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/SnugConfig.cmake ${CMAKE_BINARY_DIR}/SnugConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Snug)
install(FILES ${CMAKE_BINARY_DIR}/snug.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
