# What is linked into the program, as far as dpkg knows it: the licences are installed with the program, the packages
# name it, and linked.tsv in the build directory lists it for the SBOM. What the linker finds is what is asked for, so
# this is right for another processor too.
set(files ${CLI11_DIR}) # headers only
if(NOT RLOCK_SHARED_LIBRARIES AND NOT RLOCK_SANITIZE)
  list(APPEND files ${fmt_DIR}) # headers only too, in this case
  foreach(library ${HIREDIS_STATIC_LIBRARIES} ${OPENSSL_STATIC_LIBRARIES} stdc++ gcc_eh c)
    find_library(RLOCK_${library}_FILE lib${library}.a NO_DEFAULT_PATH
                 PATHS ${HIREDIS_STATIC_LIBRARY_DIRS} ${OPENSSL_STATIC_LIBRARY_DIRS})
    set(file ${RLOCK_${library}_FILE})
    if(NOT file)
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${library}.a
                      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
    if(IS_ABSOLUTE "${file}")
      get_filename_component(file "${file}" REALPATH)
      list(APPEND files ${file})
    else()
      message(WARNING "lib${library}.a was not found, so rlock cannot be linked statically: install it, or add "
                      "-DRLOCK_SHARED_LIBRARIES=ON")
    endif()
  endforeach()
endif()
find_program(DPKG_QUERY dpkg-query)
if(NOT DPKG_QUERY)
  return()
endif()
execute_process(COMMAND ${DPKG_QUERY} --search ${files} OUTPUT_VARIABLE found ERROR_QUIET)
string(REGEX MATCHALL "[^\n]+: " found "${found}")
list(TRANSFORM found REPLACE ": $" "")
list(REMOVE_DUPLICATES found)
list(SORT found)

# A prefix of Debian's name, the library's own name, and its licence.
set(libraries
  "libcli11-|CLI11|BSD-3-Clause" "libfmt-|fmt|MIT" "libhiredis-|hiredis|BSD-3-Clause" "libssl-|OpenSSL|Apache-2.0"
  "zlib1g-|zlib|Zlib" "libzstd-|zstd|BSD-3-Clause" "libc6-|glibc|LGPL-2.1-or-later"
  "libstdc++-|libstdc++|GPL-3.0-or-later WITH GCC-exception-3.1" "libgcc-|libgcc|GPL-3.0-or-later WITH GCC-exception-3.1")
set(RLOCK_LICENCES MIT)
set(RLOCK_BUILT_USING "")
set(table "")
set(terms "") # the licences that Debian keeps once for all packages, and other systems do not
foreach(package IN LISTS found)
  set(name ${package})
  set(licence NOASSERTION)
  foreach(library IN LISTS libraries)
    string(REPLACE "|" ";" library "${library}")
    list(GET library 0 prefix)
    string(FIND ${package} ${prefix} at)
    if(at EQUAL 0)
      list(GET library 1 name)
      list(GET library 2 licence)
    endif()
  endforeach()
  list(APPEND RLOCK_LICENCES ${licence})
  execute_process(COMMAND ${DPKG_QUERY} --show --showformat
                    "\${Package}\t\${Architecture}\t\${Version}\t\${source:Package} (= \${source:Version})" ${package}
                  OUTPUT_VARIABLE versions)
  string(APPEND table "${name}\t${licence}\t${versions}\n")
  string(REGEX REPLACE ".*\t" "" source "${versions}")
  list(APPEND RLOCK_BUILT_USING "${source}")

  string(REGEX REPLACE ":.*" "" package ${package})
  get_filename_component(copyright /usr/share/doc/${package}/copyright REALPATH)
  if(EXISTS ${copyright})
    install(FILES ${copyright} DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences RENAME ${package})
    file(STRINGS ${copyright} referring REGEX "/usr/share/common-licenses/")
    string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]" referring "${referring}")
    list(APPEND terms ${referring})
  endif()
endforeach()
list(REMOVE_DUPLICATES RLOCK_LICENCES)
list(REMOVE_DUPLICATES RLOCK_BUILT_USING)
list(REMOVE_DUPLICATES terms)
foreach(file IN LISTS terms)
  get_filename_component(name ${file} NAME)
  get_filename_component(file ${file} REALPATH)
  if(EXISTS ${file})
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences RENAME ${name})
  endif()
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/linked.tsv "${table}")
