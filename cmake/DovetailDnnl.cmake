# SPDX-License-Identifier: MIT
# Finds oneDNN as the target DNNL::dnnl, for the build and for the installed package; quiet where there is none.
# Header and library are looked for first: the package file of Debian's libdnnl-dev demands OpenCL's development files,
# which the CPU device does not need and that package does not bring. A stated dnnl_DIR goes before both.
if(NOT TARGET DNNL::dnnl AND dnnl_DIR)
  find_package(dnnl CONFIG QUIET)
endif()
if(NOT TARGET DNNL::dnnl)
  find_path(DOVETAIL_DNNL_INCLUDE dnnl.hpp)
  find_library(DOVETAIL_DNNL_LIBRARY dnnl)
  mark_as_advanced(DOVETAIL_DNNL_INCLUDE DOVETAIL_DNNL_LIBRARY)
  if(DOVETAIL_DNNL_INCLUDE AND DOVETAIL_DNNL_LIBRARY)
    add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
    set_target_properties(DNNL::dnnl PROPERTIES
      IMPORTED_LOCATION "${DOVETAIL_DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${DOVETAIL_DNNL_INCLUDE}")
  else()
    find_package(dnnl CONFIG QUIET)
  endif()
endif()
