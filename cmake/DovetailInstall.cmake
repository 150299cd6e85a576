# SPDX-License-Identifier: MIT
# What an installation holds: every header, the CMake package, one pkg-config file a component, licence and documents.
# All of it is text that fits any machine, so it goes to include/ and share/; every path in it is relative to where it
# lies, so the folder can be moved. scripts/check_consumers.py installs, moves, and builds against it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

target_include_directories(dovetail INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
install(DIRECTORY include/ kernels/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")

# ---- the CMake package

set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/dovetail")
install(TARGETS dovetail dovetail_threads dovetail_cpu dovetail_io EXPORT dovetail-targets)
install(EXPORT dovetail-targets NAMESPACE dovetail:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/dovetail-config.cmake.in dovetail-config.cmake INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change names, so 0.2 does not stand in for 0.1.
write_basic_package_version_file(dovetail-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/dovetail-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/dovetail-config-version.cmake" cmake/DovetailDnnl.cmake
        DESTINATION "${package_dir}")

# ---- pkg-config

# dovetail_pc(NAME DESCRIPTION [REQUIRES NAME...] [CFLAGS FLAG...] [LIBS FLAG...]): one file, NAME.pc.
function(dovetail_pc name description)
  cmake_parse_arguments(PARSE_ARGV 2 pc "" "" "REQUIRES;CFLAGS;LIBS")
  set(pc_dir "${CMAKE_INSTALL_DATADIR}/pkgconfig")
  set(includes "${CMAKE_INSTALL_INCLUDEDIR}")
  if(NOT IS_ABSOLUTE "${includes}" AND NOT IS_ABSOLUTE "${pc_dir}")
    file(RELATIVE_PATH includes "/${pc_dir}" "/${includes}")
    string(PREPEND includes "\${pcfiledir}/")
  elseif(NOT IS_ABSOLUTE "${includes}")
    set(includes "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
  endif()
  list(JOIN pc_REQUIRES ", " requires)
  list(JOIN pc_CFLAGS " " cflags)
  list(JOIN pc_LIBS " " libs)
  configure_file(cmake/dovetail.pc.in ${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${pc_dir}")
endfunction()

dovetail_pc(dovetail "${PROJECT_DESCRIPTION} (compile with -std=c++20 or later)" CFLAGS "-I\${includedir}")
dovetail_pc(dovetail-threads "Dovetail's ranks on threads" REQUIRES dovetail CFLAGS -pthread LIBS -pthread)
dovetail_pc(dovetail-cpu "Dovetail's CPU device, on oneDNN" REQUIRES dovetail LIBS -ldnnl)
dovetail_pc(dovetail-io "Dovetail's readers of checkpoints and of models' configurations"
            REQUIRES dovetail "nlohmann_json >= 3.10")

# ---- documents: error messages name files of docs/, and README.md links to them and to the examples

install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(DIRECTORY examples/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/examples"
        FILES_MATCHING PATTERN "*.md" PATTERN "*.cpp" PATTERN "*.hpp")
