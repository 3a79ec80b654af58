# cpack runs this when packages have been made. A .tar.gz that root unpacks must not give /usr/local to whoever built it.
# cpack writes the builder's own user, so the archive is written again, as root's.
foreach(archive IN LISTS CPACK_PACKAGE_FILES)
  if(archive MATCHES "\\.tar\\.gz$")
    get_filename_component(folder "${archive}" NAME)
    string(REGEX REPLACE "\\.tar\\.gz$" "" folder "${folder}")
    execute_process(COMMAND tar --sort=name --owner=root:0 --group=root:0 --format=gnu -czf "${archive}" "${folder}"
                    WORKING_DIRECTORY "${CPACK_TEMPORARY_DIRECTORY}/.." COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
