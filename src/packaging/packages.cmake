# cpack makes a .tar.gz, and the packages whose tools are installed. With SOURCE_DATE_EPOCH in the environment of cmake
# and cpack, the same program gives the same bytes.
set(CPACK_GENERATOR TGZ)
find_program(DPKG_DEB dpkg-deb)
if(DPKG_DEB)
  list(APPEND CPACK_GENERATOR DEB)
endif()
find_program(RPMBUILD rpmbuild)
if(RPMBUILD)
  list(APPEND CPACK_GENERATOR RPM)
endif()

string(REPLACE x86_64 amd64 architecture "${CMAKE_SYSTEM_PROCESSOR}") # as Debian, Go and OCI say it
string(REPLACE aarch64 arm64 architecture "${architecture}")
set(CPACK_PACKAGE_FILE_NAME ${PROJECT_NAME}-${PROJECT_VERSION}-linux-${architecture})
# A package must name somebody, and there is no address that would be read: .invalid says so. Who publishes packages
# names himself.
set(CPACK_PACKAGE_CONTACT "The rlock authors <nobody@rlock.invalid>" CACHE STRING "Who answers for the packages")
set(CPACK_PACKAGE_HOMEPAGE_URL "" CACHE STRING "Where the packages come from")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed lock for shell scripts and operations, on Redis")
set(CPACK_PACKAGE_DESCRIPTION "rlock runs a command on one machine at a time, among all that use the same
Redis. It renews the lock while the command runs, and stops the command
before another machine can take a lock that could not be kept.")
set(CPACK_PACKAGE_VENDOR "")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)

set(news "Version ${PROJECT_VERSION}. What is new stands in rlock(1), under HISTORY.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(CMAKE_CROSSCOMPILING)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture})
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ${RLOCK_SHARED_LIBRARIES})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates") # for URLs with TLS
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
if(RLOCK_BUILT_USING) # a field that cpack does not know, so it stands in a line below one that it does
  list(JOIN RLOCK_BUILT_USING ", " using)
  string(APPEND CPACK_DEBIAN_PACKAGE_SECTION "\nStatic-Built-Using: ${using}")
endif()
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/changelog
  "rlock (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * ${news}\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_PACKAGE_RECOMMENDS ca-certificates)
list(APPEND RLOCK_LICENCES MIT)
list(REMOVE_DUPLICATES RLOCK_LICENCES)
list(JOIN RLOCK_LICENCES " AND " CPACK_RPM_PACKAGE_LICENSE)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1 /usr/share/man/man7
  /usr/share/fish /usr/share/fish/vendor_completions.d
  /usr/share/zsh /usr/share/zsh/site-functions
  /usr/share/bash-completion /usr/share/bash-completion/completions)
string(TIMESTAMP date "%a %b %d %Y" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/changelog.rpm "* ${date} ${CPACK_PACKAGE_CONTACT} - ${PROJECT_VERSION}-1\n- ${news}\n")
set(CPACK_RPM_CHANGELOG_FILE ${PROJECT_BINARY_DIR}/changelog.rpm)
# Nothing of the machine that it was made on, and nothing done by tools for that machine's processor.
set(CPACK_RPM_SPEC_MORE_DEFINE "%global _buildhost localhost
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global _build_id_links none
%global __os_install_post %{nil}")

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/src/packaging/before.cmake)
set(CPACK_POST_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/src/packaging/after.cmake)
set(CPACK_RLOCK_CHANGELOG ${PROJECT_BINARY_DIR}/changelog)
include(CPack)
