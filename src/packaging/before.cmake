# cpack runs this when the files of a package have been installed in a directory of their own.
set(root "${CPACK_TEMPORARY_INSTALL_DIRECTORY}")
if(CPACK_GENERATOR STREQUAL DEB)
  # Debian wants a compressed manual, a changelog, and a note if the program is statically linked, on purpose.
  configure_file("${CPACK_RLOCK_CHANGELOG}" "${root}/usr/share/doc/rlock/changelog" COPYONLY)
  if(NOT CPACK_DEBIAN_PACKAGE_SHLIBDEPS)
    file(WRITE "${root}/usr/share/lintian/overrides/rlock" "rlock: statically-linked-binary\n")
  endif()
  execute_process(COMMAND gzip -9nf doc/rlock/changelog man/man1/rlock.1 man/man7/rlock-protocol.7
                  WORKING_DIRECTORY "${root}/usr/share" COMMAND_ERROR_IS_FATAL ANY)
elseif(CPACK_GENERATOR STREQUAL TGZ) # it may be unpacked in a Debian's /usr, where zsh looks in vendor-completions
  file(COPY "${root}/share/zsh/site-functions/_rlock" DESTINATION "${root}/share/zsh/vendor-completions")
elseif(EXISTS "${root}/usr/share/zsh/vendor-completions") # made on a Debian, and not for one
  file(RENAME "${root}/usr/share/zsh/vendor-completions" "${root}/usr/share/zsh/site-functions")
endif()
execute_process(COMMAND chmod -R u=rwX,go=rX "${root}" COMMAND_ERROR_IS_FATAL ANY)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find "${root}" -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
